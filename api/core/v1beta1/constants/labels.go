package constants

// Labels of objects in the garden, in seeds and in shoots.
const (
	// GardenerPurpose says what an object is for.
	GardenerPurpose = "gardener.cloud/purpose"
	// GardenRole says what role an object plays in the landscape. The values are the GardenRole constants.
	GardenRole = "gardener.cloud/role"
	// VPAEvictionRequirements on a VerticalPodAutoscaler says that a controller of the gardenlet writes its eviction requirements. The value
	// is EvictionRequirementManagedByController.
	VPAEvictionRequirements = "autoscaling.gardener.cloud/eviction-requirements"
	// ShootNoCleanup keeps an object in a shoot from being removed before the shoot is deleted.
	ShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// ShootIsSelfHosted says that a Shoot is self-hosted.
	ShootIsSelfHosted = "shoot.gardener.cloud/self-hosted"
	// ShootStatus is the health of a Shoot as one word: healthy, progressing, unhealthy or unknown.
	ShootStatus = "shoot.gardener.cloud/status"
	// ExcludeWebhookFromRemediation keeps a webhook in a shoot from being repaired.
	ExcludeWebhookFromRemediation = "remediation.webhook.shoot.gardener.cloud/exclude"
	// BackupProvider is the provider type of the object store that a Secret is for.
	BackupProvider = "backup.gardener.cloud/provider"
	// SeedProvider is the provider type of a seed.
	SeedProvider = "seed.gardener.cloud/provider"
	// SeedRegion is the region of a seed.
	SeedRegion = "seed.gardener.cloud/region"
	// ShootProvider is the provider type of a shoot.
	ShootProvider = "shoot.gardener.cloud/provider"
	// ShootProviderPrefix is the prefix of labels that say which provider types credentials are used for.
	ShootProviderPrefix = "provider.shoot.gardener.cloud/"
	// NetworkingProvider is the type of the network extension of a shoot.
	NetworkingProvider = "networking.shoot.gardener.cloud/provider"
	// ExtensionPrefix is the prefix of labels that say which extensions an object needs.
	ExtensionPrefix = "extensions.gardener.cloud/"
	// SeedNetwork says what kind of network a seed has.
	SeedNetwork = "seed.gardener.cloud/network"
	// SelfHostedShootCluster says that a seed is a self-hosted shoot.
	SelfHostedShootCluster = "seed.gardener.cloud/self-hosted-shoot-cluster"
	// AggregateToProjectMember adds a ClusterRole to what project members may do.
	AggregateToProjectMember = "rbac.gardener.cloud/aggregate-to-project-member"
	// AggregateToProjectViewer adds a ClusterRole to what project viewers may do.
	AggregateToProjectViewer = "rbac.gardener.cloud/aggregate-to-project-viewer"
	// AggregateToProjectServiceAccountManager adds a ClusterRole to what service account managers of projects may
	// do.
	AggregateToProjectServiceAccountManager = "rbac.gardener.cloud/aggregate-to-project-serviceaccountmanager"
	// AggregateToExtensionRole adds a ClusterRole to a project's extension role.
	AggregateToExtensionRole = "rbac.gardener.cloud/aggregate-to-extension-role"
	// SecretBindingReference says that a SecretBinding uses the Secret or Quota.
	SecretBindingReference = "reference.gardener.cloud/secretbinding"
	// CredentialsBindingReference says that a CredentialsBinding uses the Secret, WorkloadIdentity or Quota.
	CredentialsBindingReference = "reference.gardener.cloud/credentialsbinding"
	// PrefixSeedName is the prefix of labels that say which seeds an object is for.
	PrefixSeedName = "name.seed.gardener.cloud/"
	// ExtensionExtensionTypePrefix is the prefix of labels for extension types that an object needs.
	ExtensionExtensionTypePrefix = "extensions.extensions.gardener.cloud/"
	// ExtensionProviderTypePrefix is the prefix of labels for provider types that an object needs.
	ExtensionProviderTypePrefix = "provider.extensions.gardener.cloud/"
	// ExtensionDNSRecordTypePrefix is the prefix of labels for DNS provider types that an object needs.
	ExtensionDNSRecordTypePrefix = "dnsrecord.extensions.gardener.cloud/"
	// ExtensionNetworkingTypePrefix is the prefix of labels for network types that an object needs.
	ExtensionNetworkingTypePrefix = "networking.extensions.gardener.cloud/"
	// ExtensionOperatingSystemConfigTypePrefix is the prefix of labels for operating systems that an object needs.
	ExtensionOperatingSystemConfigTypePrefix = "operatingsystemconfig.extensions.gardener.cloud/"
	// ExtensionContainerRuntimeTypePrefix is the prefix of labels for container runtimes that an object needs.
	ExtensionContainerRuntimeTypePrefix = "containerruntime.extensions.gardener.cloud/"
	// ExtensionSelfHostedShootExposureTypePrefix is the prefix of labels for exposure types that an object needs.
	ExtensionSelfHostedShootExposureTypePrefix = "selfhostedshootexposure.extensions.gardener.cloud/"
	// NetworkPolicyToBlockedCIDRs lets pods reach the networks that are blocked otherwise.
	NetworkPolicyToBlockedCIDRs = "networking.gardener.cloud/to-blocked-cidrs"
	// NetworkPolicyToDNS lets pods reach the DNS servers of the cluster.
	NetworkPolicyToDNS = "networking.gardener.cloud/to-dns"
	// NetworkPolicyToPrivateNetworks lets pods reach private networks.
	NetworkPolicyToPrivateNetworks = "networking.gardener.cloud/to-private-networks"
	// NetworkPolicyToPublicNetworks lets pods reach public networks.
	NetworkPolicyToPublicNetworks = "networking.gardener.cloud/to-public-networks"
	// NetworkPolicyToSeedAPIServer lets pods reach the API server of the seed. Use NetworkPolicyToRuntimeAPIServer
	// for new pods.
	NetworkPolicyToSeedAPIServer = "networking.gardener.cloud/to-seed-apiserver"
	// NetworkPolicyToRuntimeAPIServer lets pods reach the API server of the cluster that they run in.
	NetworkPolicyToRuntimeAPIServer = "networking.gardener.cloud/to-runtime-apiserver"
	// NetworkPolicyShootFromSeed lets pods of a shoot be reached from the seed.
	NetworkPolicyShootFromSeed = "networking.gardener.cloud/from-seed"
	// NetworkPolicyShootToAPIServer lets pods of a shoot reach its API server.
	NetworkPolicyShootToAPIServer = "networking.gardener.cloud/to-apiserver"
	// NetworkPolicyShootToKubelet lets pods of a shoot reach the kubelets.
	NetworkPolicyShootToKubelet = "networking.gardener.cloud/to-kubelet"
	// NetworkPolicyAccessTargetAPIServer selects namespaces whose pods may reach the control planes.
	NetworkPolicyAccessTargetAPIServer = "networking.gardener.cloud/access-target-apiserver"
	// ObservabilityApplication names the application that an observability object is for.
	ObservabilityApplication = "observability.gardener.cloud/app"
	// App names the application that an object belongs to.
	App = "app"
	// Role names the part of the application that an object belongs to.
	Role = "role"
	// ShootName is the name of the Shoot that an object belongs to.
	ShootName = "shoot.gardener.cloud/name"
	// ShootNamespace is the namespace of the Shoot that an object belongs to.
	ShootNamespace = "shoot.gardener.cloud/namespace"
	// ShootUID is the UID of the Shoot that an object belongs to.
	ShootUID = "shoot.gardener.cloud/uid"
	// DiscoveryPublic says what a ConfigMap or Secret publishes.
	DiscoveryPublic = "discovery.gardener.cloud/public"
	// PublicKeys is what releases of the original's gardener-discovery-server look for instead of DiscoveryPublic, with the same value, in Secrets with
	// the documents of managed issuers.
	PublicKeys = "authentication.gardener.cloud/public-keys"
	// ExposureClassHandlerName is the name of the exposure class handler that an object belongs to.
	ExposureClassHandlerName = "handler.exposureclass.gardener.cloud/name"
	// NodeLocalDNS says that a node has a DNS cache.
	NodeLocalDNS = "networking.gardener.cloud/node-local-dns-enabled"
	// SchedulingPurpose says what the scheduler uses a ConfigMap for.
	SchedulingPurpose = "scheduling.gardener.cloud/purpose"
	// ControllerRegistrationName is the ControllerRegistration that an object belongs to.
	ControllerRegistrationName = "controllerregistration.core.gardener.cloud/name"
	// PodMaintenanceRestart makes a pod restart in the maintenance time window.
	PodMaintenanceRestart = "maintenance.gardener.cloud/restart"
	// CareConditionType is the condition that the health of an object counts for.
	CareConditionType = "care.gardener.cloud/condition-type"
	// WorkerName is the Worker that an object belongs to.
	WorkerName = "worker.gardener.cloud/name"
	// WorkerPool is the worker pool that a node belongs to.
	WorkerPool = "worker.gardener.cloud/pool"
	// WorkerPoolDeprecated is the old label for the worker pool of a node.
	WorkerPoolDeprecated = "worker.garden.sapcloud.io/group"
	// WorkerKubernetesVersion is the Kubernetes version of a node's kubelet.
	WorkerKubernetesVersion = "worker.gardener.cloud/kubernetes-version"
	// WorkerPoolSystemComponents says that system components may run on a node.
	WorkerPoolSystemComponents = "worker.gardener.cloud/system-components"
	// WorkerPoolGardenerNodeAgentSecretName is the Secret with the configuration of a node.
	WorkerPoolGardenerNodeAgentSecretName = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// WorkerCRIName is the container runtime interface of a node.
	WorkerCRIName = "worker.gardener.cloud/cri-name"
	// NodeRoleControlPlane says that a node hosts the control plane.
	NodeRoleControlPlane = "node-role.kubernetes.io/control-plane"
	// NodeCriticalComponent says that a node is not ready until the pod is.
	NodeCriticalComponent = "node.gardener.cloud/critical-component"
	// UpdateRestriction says that only Gardener may change an object.
	UpdateRestriction = "gardener.cloud/update-restriction"
	// ProjectName is the Project that a namespace belongs to.
	ProjectName = "project.gardener.cloud/name"
	// InjectGardenKubeconfig says whether pods get a kubeconfig for the garden cluster.
	InjectGardenKubeconfig = "extensions.gardener.cloud/inject-garden-kubeconfig"
	// ShootEndpointAdvertise makes the hosts of an Ingress or a TLSRoute appear among the addresses of the Shoot.
	ShootEndpointAdvertise = "endpoint.shoot.gardener.cloud/advertise"
	// ShootEndpointApplication names the application behind an advertised address.
	ShootEndpointApplication = "endpoint.shoot.gardener.cloud/application"
	// DeletionProtected keeps an object from being deleted by accident.
	DeletionProtected = "gardener.cloud/deletion-protected"
	// SecretBackupStatus says whether backups with the credentials of a Secret work.
	SecretBackupStatus = "secret.backup.gardener.cloud/status"
	// CredentialsBindingStatus says whether the credentials of a CredentialsBinding work.
	CredentialsBindingStatus = "credentialsbinding.gardener.cloud/status"
)
