package constants

// Values of labels and annotations.
const (
	// AuthenticationIssuerManaged is the value of AuthenticationIssuer for an issuer that Gardener serves.
	AuthenticationIssuerManaged = "managed"
	// SeedNetworkPrivate is the value of SeedNetwork for a private network.
	SeedNetworkPrivate = "private"
	// EvictionRequirementManagedByController is the value of VPAEvictionRequirements.
	EvictionRequirementManagedByController = "managed-by-controller"
	// EvictionRequirementNever is the value of VPAEvictionRequirementDownscaleRestriction for pods that keep what they have.
	EvictionRequirementNever = "never"
	// EvictionRequirementInMaintenanceWindowOnly is the value of VPAEvictionRequirementDownscaleRestriction for pods that are scaled down in
	// the maintenance time window.
	EvictionRequirementInMaintenanceWindowOnly = "in-maintenance-window-only"
	// NetworkPolicyAllowed is the value of all network policy labels.
	NetworkPolicyAllowed = "allowed"
	// DiscoveryShootCA is the value of DiscoveryPublic for the CA certificates of a Shoot.
	DiscoveryShootCA = "shoot-ca"
	// DiscoveryServiceAccount is the value of DiscoveryPublic for the documents of a managed issuer of service account tokens.
	DiscoveryServiceAccount = "serviceaccount"
	// SchedulingPurposeRegionConfig is the value of SchedulingPurpose for distances between regions.
	SchedulingPurposeRegionConfig = "region-config"
	// GardenPurposeMachineClass is the value of GardenerPurpose for machine classes.
	GardenPurposeMachineClass = "machineclass"
	// GardenPurposeShootStaticManifest is the value of GardenerPurpose for manifests that are put into shoots.
	GardenPurposeShootStaticManifest = "shoot-static-manifest"
	// IPStackIPv4 is the value of DNSIPStack for IPv4.
	IPStackIPv4 = "ipv4"
	// IPStackIPv6 is the value of DNSIPStack for IPv6.
	IPStackIPv6 = "ipv6"
	// IPStackDualStack is the value of DNSIPStack for both IP families.
	IPStackDualStack = "dual-stack"
	// GardenRoleExtension is the role of namespaces that extensions are installed in.
	GardenRoleExtension = "extension"
	// GardenRoleGarden is the role of objects of the garden itself.
	GardenRoleGarden = "garden"
	// GardenRoleSeed is the role of objects of a seed.
	GardenRoleSeed = "seed"
	// GardenRoleShoot is the role of objects of a shoot, such as its namespace in the seed.
	GardenRoleShoot = "shoot"
	// GardenRoleLogging is the role of the logging stack.
	GardenRoleLogging = "logging"
	// GardenRoleIstioSystem is the role of the service mesh's control plane.
	GardenRoleIstioSystem = "istio-system"
	// GardenRoleIstioIngress is the role of the ingress gateways.
	GardenRoleIstioIngress = "istio-ingress"
	// GardenRoleProject is the role of project namespaces.
	GardenRoleProject = "project"
	// GardenRoleExtensionProjectRole is the role of the RBAC objects for extension roles of a project.
	GardenRoleExtensionProjectRole = "extension-project-role"
	// GardenRoleControlPlane is the role of control plane components.
	GardenRoleControlPlane = "controlplane"
	// GardenRoleSystemComponent is the role of system components in a shoot.
	GardenRoleSystemComponent = "system-component"
	// GardenRoleSeedSystemComponent is the role of system components in a seed.
	GardenRoleSeedSystemComponent = "seed-system-component"
	// GardenRoleMonitoring is the role of the monitoring stack.
	GardenRoleMonitoring = "monitoring"
	// GardenRoleOptionalAddon is the role of addons.
	GardenRoleOptionalAddon = "optional-addon"
	// GardenRoleOperatingSystemConfig is the role of node configurations.
	GardenRoleOperatingSystemConfig = "operating-system-config"
	// GardenRoleKubeconfig is the role of kubeconfigs for users.
	GardenRoleKubeconfig = "kubeconfig"
	// GardenRoleCACluster is the role of a shoot's CA for users.
	GardenRoleCACluster = "ca-cluster"
	// GardenRoleCAKubelet is the role of a shoot's kubelet CA for users.
	GardenRoleCAKubelet = "ca-kubelet"
	// GardenRoleCAClient is the role of a shoot's client CA.
	GardenRoleCAClient = "ca-client"
	// GardenRoleSSHKeyPair is the role of SSH key pairs for users.
	GardenRoleSSHKeyPair = "ssh-keypair"
	// GardenRoleDefaultDomain is the role of Secrets for default domains.
	GardenRoleDefaultDomain = "default-domain"
	// GardenRoleInternalDomain is the role of the Secret for the internal domain.
	GardenRoleInternalDomain = "internal-domain"
	// GardenRoleGlobalMonitoring is the role of the Secret with credentials for the monitoring.
	GardenRoleGlobalMonitoring = "global-monitoring"
	// GardenRoleGlobalShootRemoteWriteMonitoring is the role of the Secret with credentials for remote write.
	GardenRoleGlobalShootRemoteWriteMonitoring = "global-shoot-remote-write-monitoring"
	// GardenRoleAlerting is the role of the Secret that says where alerts go.
	GardenRoleAlerting = "alerting"
	// GardenRoleControlPlaneWildcardCert is the role of the certificate for all endpoints of a seed. Nothing reads it here.
	GardenRoleControlPlaneWildcardCert = "controlplane-cert"
	// GardenRoleGardenWildcardCert is the role of the certificate for all endpoints of the garden.
	GardenRoleGardenWildcardCert = "garden-cert"
	// GardenRoleExposureClassHandler is the role of namespaces of exposure class handlers.
	GardenRoleExposureClassHandler = "exposureclass-handler"
	// GardenRoleShootServiceAccountIssuer is the role of the Secret that names the host of managed issuers.
	GardenRoleShootServiceAccountIssuer = "shoot-service-account-issuer"
	// GardenRoleHelmPullSecret is the role of Secrets with credentials for OCI registries.
	GardenRoleHelmPullSecret = "helm-pull-secret"
	// GardenRoleOCICABundle is the role of Secrets with CAs of OCI registries.
	GardenRoleOCICABundle = "oci-ca-bundle"
	// GardenRoleObservability is the role of observability components.
	GardenRoleObservability = "observability"
	// GardenRoleResourceReference is the role of copies of objects that users refer to.
	GardenRoleResourceReference = "resource-reference"
)
