package v1alpha1

// Annotations of ManagedResources and of the objects in them.
const (
	// Ignore on a ManagedResource, with the value "true", stops applying, pruning and health checks until the ManagedResource is
	// deleted. On an object in a ManagedResource it keeps the object as it is in the cluster.
	Ignore = "resources.gardener.cloud/ignore"
	// SkipHealthCheck on an object, with the value "true", leaves its health out of the condition ResourcesHealthy.
	SkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// DeleteOnInvalidUpdate on an object, with the value "true", deletes the object and creates it again if an update is refused as
	// invalid, for example because a field is immutable.
	DeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// DeletionPropagationOnInvalidUpdate on an object is the propagation policy of that deletion: Background, Foreground or Orphan.
	DeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// KeepObject on an object, with the value "true", keeps the object when its ManagedResource goes or no longer has it.
	KeepObject = "resources.gardener.cloud/keep-object"
	// Mode on an object says how it is managed. The only value is ModeIgnore.
	Mode = "resources.gardener.cloud/mode"
	// ModeIgnore is the value of Mode that makes the gardener-resource-manager ignore the object: it is removed from the status, and
	// is not changed in the cluster. Used to move an object to another ManagedResource.
	ModeIgnore = "Ignore"
	// PreserveReplicas on a workload, with the value "true", keeps the number of replicas that it has in the cluster.
	PreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// PreserveResources on a workload, with the value "true", keeps the resource requirements that its containers have in the cluster.
	PreserveResources = "resources.gardener.cloud/preserve-resources"
	// OriginAnnotation on an object is "<cluster>:<namespace>/<name>" of its ManagedResource, or just "<namespace>/<name>" if no
	// identity of the cluster is configured. Written by the gardener-resource-manager.
	OriginAnnotation = "resources.gardener.cloud/origin"
	// DescriptionAnnotation on an object says that it is not to be edited. Written by the gardener-resource-manager.
	DescriptionAnnotation = "resources.gardener.cloud/description"
	// FinalizeDeletionAfter on an object is a duration such as "5m" after which its finalizers are removed when it is being deleted.
	FinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
)

// Annotations of Secrets that the token requestor fills.
const (
	// ServiceAccountName is the name of the ServiceAccount whose token is requested. It is created if it does not exist.
	ServiceAccountName = "serviceaccount.resources.gardener.cloud/name"
	// ServiceAccountNamespace is the namespace of the ServiceAccount.
	ServiceAccountNamespace = "serviceaccount.resources.gardener.cloud/namespace"
	// ServiceAccountLabels are the labels that the ServiceAccount gets, as a JSON object.
	ServiceAccountLabels = "serviceaccount.resources.gardener.cloud/labels"
	// ServiceAccountTokenExpirationDuration is how long the token shall be valid. Unset means 12h.
	ServiceAccountTokenExpirationDuration = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
	// ServiceAccountTokenRenewTimestamp is when the token will be renewed, in RFC 3339. Written by the token requestor; removing it
	// renews the token now.
	ServiceAccountTokenRenewTimestamp = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	// ServiceAccountInjectCABundle, with the value "true", puts the CAs of the target cluster in the Secret too.
	ServiceAccountInjectCABundle = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
	// TokenRequestorTargetSecretName is the name of a Secret in the target cluster that the token is written to, instead of the
	// Secret with the annotation.
	TokenRequestorTargetSecretName = "token-requestor.resources.gardener.cloud/target-secret-name"
	// TokenRequestorTargetSecretNamespace is the namespace of that Secret.
	TokenRequestorTargetSecretNamespace = "token-requestor.resources.gardener.cloud/target-secret-namespace"
)

// Keys in the data of Secrets that the token requestor fills.
const (
	// DataKeyToken is the key of the token.
	DataKeyToken = "token"
	// DataKeyKubeconfig is the key of a kubeconfig. If the Secret has one, the token is written into it.
	DataKeyKubeconfig = "kubeconfig"
	// DataKeyCABundle is the key of the CAs.
	DataKeyCABundle = "bundle.crt"
)

// Annotations of workloads and namespaces for the webhooks.
const (
	// ProjectedTokenExpirationSeconds on a pod is how many seconds its mounted token is valid.
	ProjectedTokenExpirationSeconds = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
	// HighAvailabilityConfigZones on a namespace lists, separated by commas, the zones that its pods are spread over.
	HighAvailabilityConfigZones = "high-availability-config.resources.gardener.cloud/zones"
	// HighAvailabilityConfigZonePinning on a namespace, with the value "true", makes its pods run in these zones only.
	HighAvailabilityConfigZonePinning = "high-availability-config.resources.gardener.cloud/zone-pinning"
	// HighAvailabilityConfigHostSpread on a workload, with the value "true", never puts two of its pods on one node.
	HighAvailabilityConfigHostSpread = "high-availability-config.resources.gardener.cloud/host-spread"
	// HighAvailabilityConfigReplicas on a workload is its number of replicas, instead of the one for the failure tolerance type.
	HighAvailabilityConfigReplicas = "high-availability-config.resources.gardener.cloud/replicas"
)

// Annotations of Services for the network policy controller.
const (
	// NetworkingNamespaceSelectors is a JSON list of label selectors for namespaces from which the Service may be reached, beyond its
	// own.
	NetworkingNamespaceSelectors = "networking.resources.gardener.cloud/namespace-selectors"
	// NetworkingPodLabelSelectorNamespaceAlias is used in labels of pods that may reach the Service from other namespaces, instead of
	// its namespace's name. Several namespaces can share one.
	NetworkingPodLabelSelectorNamespaceAlias = "networking.resources.gardener.cloud/pod-label-selector-namespace-alias"
	// NetworkingFromWorldToPorts is a JSON list of ports at which the Service may be reached from everywhere.
	NetworkingFromWorldToPorts = "networking.resources.gardener.cloud/from-world-to-ports"
	// NetworkPolicyFromPolicyAnnotationPrefix starts, and NetworkPolicyFromPolicyAnnotationSuffix ends, the annotation that lists as
	// JSON the ports that pods with a label may reach. The part in between becomes part of the label.
	NetworkPolicyFromPolicyAnnotationPrefix = "networking.resources.gardener.cloud/from-"
	// NetworkPolicyFromPolicyAnnotationSuffix ends the annotation that NetworkPolicyFromPolicyAnnotationPrefix starts.
	NetworkPolicyFromPolicyAnnotationSuffix = "-allowed-ports"
)
