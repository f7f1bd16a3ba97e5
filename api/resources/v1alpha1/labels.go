package v1alpha1

// FinalizerName keeps ManagedResources until their objects are gone. It is followed by a dash and the class, if that is not the
// default one.
const FinalizerName = "resources.gardener.cloud/gardener-resource-manager"

// Labels that the gardener-resource-manager reads or writes.
const (
	// ManagedBy on an object says that the gardener-resource-manager applies it. The value is configurable, and usually "gardener".
	ManagedBy = "resources.gardener.cloud/managed-by"
	// GardenerManager is the usual value of ManagedBy.
	GardenerManager = "gardener"
	// GarbageCollectable on a Secret or ConfigMap, with the value "true", deletes it when no object refers to it any more. References
	// are read from annotations that start with "reference.resources.gardener.cloud/".
	GarbageCollectable = "resources.gardener.cloud/garbage-collectable-reference"

	// ResourceManagerPurpose on a Secret says what it is for.
	ResourceManagerPurpose = "resources.gardener.cloud/purpose"
	// LabelPurposeTokenRequest is the value of ResourceManagerPurpose for Secrets that the token requestor fills.
	LabelPurposeTokenRequest = "token-requestor"
	// ResourceManagerClass on a Secret selects the token requestor that is responsible, by the cluster the token is for.
	ResourceManagerClass = "resources.gardener.cloud/class"
	// ResourceManagerClassGarden is the value of ResourceManagerClass for tokens of the garden cluster.
	ResourceManagerClassGarden = "garden"
	// ResourceManagerClassShoot is the value of ResourceManagerClass for tokens of a shoot.
	ResourceManagerClassShoot = "shoot"

	// ProjectedTokenSkip on a pod keeps the webhook from mounting a token.
	ProjectedTokenSkip = "projected-token-mount.resources.gardener.cloud/skip"
	// TokenInvalidatorSkip on a ServiceAccount, with the value "true", keeps its static tokens valid.
	TokenInvalidatorSkip = "token-invalidator.resources.gardener.cloud/skip"
	// TokenInvalidatorConsider is on Secrets whose static token is invalidated, with the value "true". The controller sets it.
	TokenInvalidatorConsider = "token-invalidator.resources.gardener.cloud/consider"
	// EndpointSliceHintsConsider on a Service or an EndpointSlice, with the value "true", makes the webhook set hints: Kubernetes copies labels of
	// Services to their EndpointSlices.
	EndpointSliceHintsConsider = "endpoint-slice-hints.resources.gardener.cloud/consider"
	// HighAvailabilityConfigConsider on a namespace, with the value "true", makes the webhook process its workloads.
	HighAvailabilityConfigConsider = "high-availability-config.resources.gardener.cloud/consider"
	// HighAvailabilityConfigSkip on a workload keeps the webhook from changing it.
	HighAvailabilityConfigSkip = "high-availability-config.resources.gardener.cloud/skip"
	// HighAvailabilityConfigFailureToleranceType on a namespace is what its workloads shall survive: the loss of a node or a zone.
	HighAvailabilityConfigFailureToleranceType = "high-availability-config.resources.gardener.cloud/failure-tolerance-type"
	// HighAvailabilityConfigType on a workload says what it is, which decides on the number of its replicas.
	HighAvailabilityConfigType = "high-availability-config.resources.gardener.cloud/type"
	// HighAvailabilityConfigTypeController is the value of HighAvailabilityConfigType for controllers, of which one acts at a time.
	HighAvailabilityConfigTypeController = "controller"
	// HighAvailabilityConfigTypeServer is the value of HighAvailabilityConfigType for servers, of which all act.
	HighAvailabilityConfigTypeServer = "server"
	// SeccompProfileSkip on a pod keeps the webhook from setting its seccomp profile.
	SeccompProfileSkip = "seccompprofile.resources.gardener.cloud/skip"
	// KubernetesServiceHostInject on a namespace or pod, with the value "disable", keeps the webhook from setting the address of the
	// API server.
	KubernetesServiceHostInject = "apiserver-proxy.networking.gardener.cloud/inject"
	// SystemComponentsConfigConsider on a namespace, with the value "true", makes the webhook process its pods.
	SystemComponentsConfigConsider = "system-components-config.resources.gardener.cloud/consider"
	// SystemComponentsConfigSkip on a pod keeps the webhook from changing it.
	SystemComponentsConfigSkip = "system-components-config.resources.gardener.cloud/skip"
	// PodTopologySpreadConstraintsSkip on a pod keeps the webhook from changing its topology spread constraints.
	PodTopologySpreadConstraintsSkip = "topology-spread-constraints.resources.gardener.cloud/skip"
	// VPAInPlaceUpdatesSkip on a vertical pod autoscaler keeps the webhook from changing it.
	VPAInPlaceUpdatesSkip = "vpa-in-place-updates.resources.gardener.cloud/skip"
	// VPAInPlaceUpdatesMutated on a vertical pod autoscaler says that the webhook changed it.
	VPAInPlaceUpdatesMutated = "vpa-in-place-updates.resources.gardener.cloud/mutated"

	// NetworkPolicyLabelKeyPrefix starts the labels of the network policy controller.
	NetworkPolicyLabelKeyPrefix = "networking.resources.gardener.cloud/"
	// NetworkPolicyToPrefix starts the labels with which pods say what they talk to. The name of the Service, the protocol and the
	// port follow.
	NetworkPolicyToPrefix = "networking.resources.gardener.cloud/to-"
	// NetworkingServiceName on a NetworkPolicy is the name of the Service that it was written for.
	NetworkingServiceName = "networking.resources.gardener.cloud/service-name"
	// NetworkingServiceNamespace on a NetworkPolicy is the namespace of that Service.
	NetworkingServiceNamespace = "networking.resources.gardener.cloud/service-namespace"
)
