package constants

// Names of namespaces, of objects, of users and groups.
const (
	// GardenNamespace is the namespace of the landscape itself, in the garden and in seeds.
	GardenNamespace = "garden"
	// GardenerSeedLeaseNamespace is the namespace of the Leases of gardenlets.
	GardenerSeedLeaseNamespace = "gardener-system-seed-lease"
	// GardenerShootIssuerNamespace is the namespace of the public keys of managed issuers.
	GardenerShootIssuerNamespace = "gardener-system-shoot-issuer"
	// GardenerSystemPublicNamespace is the namespace that all users can read.
	GardenerSystemPublicNamespace = "gardener-system-public"
	// IstioSystemNamespace is the namespace of the service mesh's control plane.
	IstioSystemNamespace = "istio-system"
	// DefaultSNIIngressNamespace is the namespace of the ingress gateway.
	DefaultSNIIngressNamespace = "istio-ingress"
	// ProjectNamespacePrefix is the prefix of the names of project namespaces by default.
	ProjectNamespacePrefix = "garden-"
	// TechnicalIDPrefix begins the technical IDs of shoots.
	TechnicalIDPrefix = "shoot-"
	// APIServerFQDNPrefix is the prefix of the names of API servers.
	APIServerFQDNPrefix = "api"
	// IngressPrefix is the prefix of the names of ingress endpoints.
	IngressPrefix = "ingress"
	// ReferencedWorkloadIdentityPrefix is the prefix of the names of Secrets with tokens of WorkloadIdentities that users refer to.
	ReferencedWorkloadIdentityPrefix = "workload-identity-ref-"
	// ReferencedResourcesPrefix is the prefix of the names of copies of objects that users refer to.
	ReferencedResourcesPrefix = "ref-"
	// BackupSourcePrefix is the prefix of the names of BackupEntries that a moving shoot is restored from.
	BackupSourcePrefix = "source"
	// SeedNamespaceNamePrefix is the prefix of the names of the namespaces of seeds in the garden.
	SeedNamespaceNamePrefix = "seed-"
	// ExtensionGardenServiceAccountPrefix is the prefix of the names of the ServiceAccounts in that namespace with which extensions reach the
	// garden.
	ExtensionGardenServiceAccountPrefix = "extension-"
	// ConfigMapNameShootInfo is the ConfigMap in a shoot with information about it.
	ConfigMapNameShootInfo = "shoot-info"
	// ConfigMapNameGardenerInfo is the ConfigMap in GardenerSystemPublicNamespace about the landscape.
	ConfigMapNameGardenerInfo = "gardener-info"
	// ClusterIdentity is the ConfigMap with the identity of a cluster, and its key.
	ClusterIdentity = "cluster-identity"
	// ClusterIdentityOriginGardenerAPIServer says that the API server identified the cluster.
	ClusterIdentityOriginGardenerAPIServer = "gardener-apiserver"
	// ClusterIdentityOriginSeed says that the gardenlet identified the seed.
	ClusterIdentityOriginSeed = "seed"
	// ClusterIdentityOriginShoot says that the gardenlet identified the shoot.
	ClusterIdentityOriginShoot = "shoot"
	// SecretNameCACluster is the CA of an API server.
	SecretNameCACluster = "ca"
	// SecretNameCAClient is the CA for client certificates.
	SecretNameCAClient = "ca-client"
	// SecretNameCAETCD is the CA of etcd.
	SecretNameCAETCD = "ca-etcd"
	// SecretNameCAETCDPeer is the CA among etcd members.
	SecretNameCAETCDPeer = "ca-etcd-peer"
	// SecretNameCAFrontProxy is the CA of the API aggregation.
	SecretNameCAFrontProxy = "ca-front-proxy"
	// SecretNameCAKubelet is the CA of kubelets.
	SecretNameCAKubelet = "ca-kubelet"
	// SecretNameCAMetricsServer is the CA of the metrics server.
	SecretNameCAMetricsServer = "ca-metrics-server"
	// SecretNameCAVPN is the CA of the VPN.
	SecretNameCAVPN = "ca-vpn"
	// SecretNameCASeed is the CA of seed components.
	SecretNameCASeed = "ca-seed"
	// SecretNameCloudProvider is the Secret with infrastructure credentials in the namespace of a shoot.
	SecretNameCloudProvider = "cloudprovider"
	// SecretNameSSHKeyPair is the SSH key pair of nodes.
	SecretNameSSHKeyPair = "ssh-keypair"
	// SecretNameServiceAccountKey is the key for service account tokens.
	SecretNameServiceAccountKey = "service-account-key"
	// SecretNameETCDEncryptionKey is the key for etcd content.
	SecretNameETCDEncryptionKey = "kube-apiserver-etcd-encryption-key"
	// SecretNamePrefixETCDEncryptionConfiguration begins the name of the configuration that says how etcd content is encrypted, and is its role.
	SecretNamePrefixETCDEncryptionConfiguration = "kube-apiserver-etcd-encryption-configuration"
	// SecretNameObservabilityIngressUsers are the credentials with which users of a Shoot reach its monitoring.
	SecretNameObservabilityIngressUsers = "observability-ingress-users"
	// SecretNameGardener is the kubeconfig of the gardenlet for a shoot.
	SecretNameGardener = "gardener"
	// SecretNameGardenerInternal is the same with the address inside of the seed.
	SecretNameGardenerInternal = "gardener-internal"
	// SecretNameGenericTokenKubeconfig is the kubeconfig that components use with a token beside it.
	SecretNameGenericTokenKubeconfig = "generic-token-kubeconfig"
	// SecretPrefixGeneratedBackupBucket is the prefix of the names of Secrets with generated credentials for BackupBuckets.
	SecretPrefixGeneratedBackupBucket = "generated-bucket-"
	// BackupSecretName is the Secret with credentials for the object store.
	BackupSecretName = "etcd-backup"
	// DataKeyBackupBucketName is the key of Secrets with credentials for the object store that has the name of the bucket.
	DataKeyBackupBucketName = "bucketName"
	// ShootProjectSecretSuffixCACluster is the suffix of the name of the ConfigMap with a shoot's CA in the
	// project.
	ShootProjectSecretSuffixCACluster = "ca-cluster"
	// ShootProjectConfigMapSuffixCAKubelet is the suffix of the name of the ConfigMap with the CA of a shoot's kubelets in
	// the project.
	ShootProjectConfigMapSuffixCAKubelet = "ca-kubelet"
	// ShootProjectSecretSuffixCAClient is the suffix of the name of the InternalSecret with the CA of a shoot's
	// clients.
	ShootProjectSecretSuffixCAClient = "ca-client"
	// ShootProjectSecretSuffixSSHKeypair is the suffix of the name of the Secret with a shoot's SSH key pair in the project.
	ShootProjectSecretSuffixSSHKeypair = "ssh-keypair"
	// ShootProjectSecretSuffixOldSSHKeypair is the suffix of the name of the Secret with a shoot's former SSH key pair in the
	// project.
	ShootProjectSecretSuffixOldSSHKeypair = "ssh-keypair.old"
	// ShootProjectSecretSuffixMonitoring is the suffix of the name of the Secret with a shoot's monitoring credentials in the
	// project.
	ShootProjectSecretSuffixMonitoring = "monitoring"
	// AdvertisedAddressExternal names the public address of an API server.
	AdvertisedAddressExternal = "external"
	// AdvertisedAddressInternal names the address of an API server for components of the landscape.
	AdvertisedAddressInternal = "internal"
	// AdvertisedAddressUnmanaged names the address of the load balancer, for shoots without DNS. It is read, but no gardenlet writes it: every
	// seed has an internal domain, and so has every shoot.
	AdvertisedAddressUnmanaged = "unmanaged"
	// AdvertisedAddressServiceAccountIssuer names the issuer of service account tokens.
	AdvertisedAddressServiceAccountIssuer = "service-account-issuer"
	// AdvertisedAddressWildcardTLSSeedBound names the address with a publicly trusted certificate, which changes
	// with the seed. No gardenlet writes it.
	AdvertisedAddressWildcardTLSSeedBound = "wildcard-tls-seed-bound"
	// DefaultSchedulerName is the scheduler that shoots get by default.
	DefaultSchedulerName = "default-scheduler"
	// SeedsGroup is the group of all gardenlets.
	SeedsGroup = "gardener.cloud:system:seeds"
	// SeedUserNamePrefix is the prefix of the user names of gardenlets.
	SeedUserNamePrefix = "gardener.cloud:system:seed:"
	// ShootsGroup is the group of all gardenlets of self-hosted shoots.
	ShootsGroup = "gardener.cloud:system:shoots"
	// ShootUserNamePrefix is the prefix of the user names of gardenlets of self-hosted shoots.
	ShootUserNamePrefix = "gardener.cloud:system:shoot:"
	// GardenadmUserNamePrefix is the prefix of the user names that gardenadm acts under.
	GardenadmUserNamePrefix = "gardener.cloud:gardenadm:shoot:"
	// KubeconfigUserNamePrefix is the prefix that users of the garden have in shoots, with the kubeconfigs of shoots/adminkubeconfig and
	// shoots/viewerkubeconfig. The user names of Kubernetes, of service accounts and of components never begin with it.
	KubeconfigUserNamePrefix = "gardener.cloud:user:"
	// ShootSystemAdminsGroupName is the group of administrators of the landscape in shoots.
	ShootSystemAdminsGroupName = "gardener.cloud:system:admins"
	// ShootSystemViewersGroupName is the group of viewers of the landscape in shoots.
	ShootSystemViewersGroupName = "gardener.cloud:system:viewers"
	// ShootProjectAdminsGroupName is the group of administrators of the project in shoots.
	ShootProjectAdminsGroupName = "gardener.cloud:project:admins"
	// ShootProjectViewersGroupName is the group of viewers of the project in shoots.
	ShootProjectViewersGroupName = "gardener.cloud:project:viewers"
	// NodeAgentsGroup is the group of all node agents.
	NodeAgentsGroup = "gardener.cloud:node-agents"
	// NodeAgentUserNamePrefix is the prefix of the user names of node agents.
	NodeAgentUserNamePrefix = "gardener.cloud:node-agent:machine:"
	// ClusterRoleGardenerAdministrators is the ClusterRole of administrators of the landscape.
	ClusterRoleGardenerAdministrators = "gardener.cloud:system:administrators"
	// ClusterRoleSystemReadOnly is the ClusterRole of viewers in shoots.
	ClusterRoleSystemReadOnly = "gardener.cloud:system:read-only"
)
