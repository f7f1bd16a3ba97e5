package constants

// Values of fields that have no type of their own.
const (
	// ProjectMemberAdmin is the role of members who may do everything but manage members.
	ProjectMemberAdmin = "admin"
	// ProjectMemberOwner is the role of the user who is responsible for a project.
	ProjectMemberOwner = "owner"
	// ProjectMemberUserAccessManager is the role of members who manage members.
	ProjectMemberUserAccessManager = "uam"
	// ProjectMemberServiceAccountManager is the role of members who manage service accounts.
	ProjectMemberServiceAccountManager = "serviceaccountmanager"
	// ProjectMemberViewer is the role of members who may read everything but Secrets.
	ProjectMemberViewer = "viewer"
	// ProjectMemberExtensionPrefix is the prefix of roles that extensions define.
	ProjectMemberExtensionPrefix = "extension:"
	// CloudProfileReferenceKindCloudProfile is the kind of a reference to a CloudProfile.
	CloudProfileReferenceKindCloudProfile = "CloudProfile"
	// CloudProfileReferenceKindNamespacedCloudProfile is the kind of a reference to a NamespacedCloudProfile.
	CloudProfileReferenceKindNamespacedCloudProfile = "NamespacedCloudProfile"
	// ControllerDeploymentTypeHelm is the built-in type of a ControllerDeployment.
	ControllerDeploymentTypeHelm = "helm"
	// ArchitectureName is the capability for the CPU architecture.
	ArchitectureName = "architecture"
	// ArchitectureAMD64 is the CPU architecture of most machines.
	ArchitectureAMD64 = "amd64"
	// ArchitectureARM64 is the CPU architecture of ARM machines.
	ArchitectureARM64 = "arm64"
	// VolumeClassStandard is the class of ordinary volumes.
	VolumeClassStandard = "standard"
	// VolumeClassPremium is the class of fast volumes.
	VolumeClassPremium = "premium"
	// KubernetesDashboardAuthModeToken is how users log in to the dashboard.
	KubernetesDashboardAuthModeToken = "token"
	// DNSProviderUnmanaged is the type of DNS provider for shoots without managed records.
	DNSProviderUnmanaged = "unmanaged"
	// IngressKindNginx is the kind of ingress controller that seeds can have.
	IngressKindNginx = "nginx"
	// DefaultDomain is the domain of services in a cluster.
	DefaultDomain = "cluster.local"
	// DataTypeSecret is the type of ShootState data that holds a Secret.
	DataTypeSecret = "secret"
	// DataTypeMachineState is the type of ShootState data that holds machines.
	DataTypeMachineState = "machine-state"
	// DataTypeContainerRuntime is the type of ShootState data that holds the spec of a ContainerRuntime that the Shoot has no longer. Ours.
	DataTypeContainerRuntime = "container-runtime"
	// ResourceShoots is the resource that can need the approval of a second user for deletion.
	ResourceShoots = "shoots"
	// GardenerAudience is the audience of tokens for Gardener components.
	GardenerAudience = "gardener"
	// DefaultPodNetworkCIDR is the pod network of shoots on seeds that say nothing else.
	DefaultPodNetworkCIDR = "100.96.0.0/11"
	// DefaultServiceNetworkCIDR is the service network of shoots on seeds that say nothing else.
	DefaultServiceNetworkCIDR = "100.64.0.0/13"
	// DefaultVPNRangeV6 is the network of the VPN between seeds and shoots.
	DefaultVPNRangeV6 = "fd8f:6d53:b97a:1::/96"
	// ReservedKubeApiServerMappingRange is reserved for the VPN; clusters must not use it.
	ReservedKubeApiServerMappingRange = "240.0.0.0/8"
	// ReservedSeedPodNetworkMappedRange is reserved for the VPN; clusters must not use it.
	ReservedSeedPodNetworkMappedRange = "241.0.0.0/8"
	// ReservedShootNodeNetworkMappedRange is reserved for the VPN; clusters must not use it.
	ReservedShootNodeNetworkMappedRange = "242.0.0.0/8"
	// ReservedShootServiceNetworkMappedRange is reserved for the VPN; clusters must not use it.
	ReservedShootServiceNetworkMappedRange = "243.0.0.0/8"
	// ReservedShootPodNetworkMappedRange is reserved for the VPN; clusters must not use it.
	ReservedShootPodNetworkMappedRange = "244.0.0.0/8"
)
