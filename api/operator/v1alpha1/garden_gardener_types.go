package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Gardener is about the components of Gardener.
type Gardener struct {
	// ClusterIdentity distinguishes this garden from others. It becomes part of the cluster identity of every shoot.
	// Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterIdentity is immutable"
	ClusterIdentity string `json:"clusterIdentity"`

	// GardenerAPIServer configures the gardener-apiserver.
	// +optional
	GardenerAPIServer *GardenerAPIServerConfig `json:"gardenerAPIServer,omitempty"`

	// GardenerAdmissionController configures the gardener-admission-controller.
	// +optional
	GardenerAdmissionController *GardenerAdmissionControllerConfig `json:"gardenerAdmissionController,omitempty"`

	// GardenerControllerManager configures the gardener-controller-manager.
	// +optional
	GardenerControllerManager *GardenerControllerManagerConfig `json:"gardenerControllerManager,omitempty"`

	// GardenerScheduler configures the gardener-scheduler.
	// +optional
	GardenerScheduler *GardenerSchedulerConfig `json:"gardenerScheduler,omitempty"`

	// GardenerDashboard configures the gardener-dashboard. Unset means that there is none.
	// +optional
	GardenerDashboard *GardenerDashboardConfig `json:"gardenerDashboard,omitempty"`

	// GardenerDiscoveryServer configures the gardener-discovery-server, which serves the OpenID discovery documents of
	// shoots. Unset means that there is none.
	// +optional
	GardenerDiscoveryServer *GardenerDiscoveryServerConfig `json:"gardenerDiscoveryServer,omitempty"`

	// GardenerResourceManager configures the gardener-resource-manager of the virtual garden.
	// +optional
	GardenerResourceManager *GardenerResourceManagerConfig `json:"gardenerResourceManager,omitempty"`
}

// GardenerAPIServerConfig configures the gardener-apiserver.
type GardenerAPIServerConfig struct {
	// FeatureGates are feature gates by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// AdmissionPlugins configures admission plugins, each by its name.
	// +optional
	AdmissionPlugins []corev1beta1.AdmissionPlugin `json:"admissionPlugins,omitempty"`

	// AuditConfig is about the audit policy.
	// +optional
	AuditConfig *corev1beta1.AuditConfig `json:"auditConfig,omitempty"`

	// AuditWebhook sends audit events to a server.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`

	// Logging is about the verbosity of the log.
	// +optional
	Logging *corev1beta1.APIServerLogging `json:"logging,omitempty"`

	// Requests limits how many requests are served at the same time.
	// +optional
	Requests *corev1beta1.APIServerRequests `json:"requests,omitempty"`

	// WatchCacheSizes is about the watch cache.
	// +optional
	WatchCacheSizes *corev1beta1.WatchCacheSizes `json:"watchCacheSizes,omitempty"`

	// EncryptionConfig is about encryption at rest.
	// +optional
	EncryptionConfig *corev1beta1.EncryptionConfig `json:"encryptionConfig,omitempty"`

	// GoAwayChance is the chance, between 0 and 0.02, that a client is requested to open a new connection, so that load spreads
	// over all replicas. Unset means 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=0.02
	// +optional
	GoAwayChance *float64 `json:"goAwayChance,omitempty"`

	// ShootAdminKubeconfigMaxExpiration is the longest validity of a kubeconfig from shoots/adminkubeconfig. Unset means
	// 24h.
	// +optional
	ShootAdminKubeconfigMaxExpiration *metav1.Duration `json:"shootAdminKubeconfigMaxExpiration,omitempty"`
}

// GardenerAdmissionControllerConfig configures the gardener-admission-controller.
type GardenerAdmissionControllerConfig struct {
	// LogLevel is the level of the log. Defaults to info.
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default="info"
	// +optional
	LogLevel *string `json:"logLevel,omitempty"`

	// ResourceAdmissionConfiguration limits the size and number of objects in project namespaces.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
}

// ResourceAdmissionConfiguration limits the size and number of objects in project namespaces.
type ResourceAdmissionConfiguration struct {
	// Limits are the limits.
	Limits []ResourceLimit `json:"limits"`

	// UnrestrictedSubjects are users, groups and service accounts that the limits do not apply to.
	// +optional
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`

	// OperationMode is block to refuse what exceeds a limit, log to only log it. Unset means block.
	// +optional
	OperationMode *ResourceAdmissionWebhookMode `json:"operationMode,omitempty"`
}

// ResourceLimit limits the size or the number of objects of some resources.
type ResourceLimit struct {
	// APIGroups are the API groups, where * stands for all.
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`

	// APIVersions are the API versions, where * stands for all.
	// +optional
	APIVersions []string `json:"apiVersions,omitempty"`

	// Resources are the resources, where * stands for all.
	Resources []string `json:"resources"`

	// Size is the most that an object may be in bytes as JSON, without its status and managed fields.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Count is the most objects that there may be.
	// +optional
	Count *int64 `json:"count,omitempty"`
}

// GardenerControllerManagerConfig configures the gardener-controller-manager.
type GardenerControllerManagerConfig struct {
	// FeatureGates are feature gates by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// DefaultProjectQuotas are resource quotas for the namespaces of projects. The first one that matches a project
	// counts.
	// +optional
	DefaultProjectQuotas []ProjectQuotaConfiguration `json:"defaultProjectQuotas,omitempty"`

	// PlantAllowCIDRs are private networks in which the API servers of Plants may be. Without them, only public addresses are connected to. A
	// NetworkPolicy has to allow them, too. The original has no such field.
	// +optional
	PlantAllowCIDRs []string `json:"plantAllowCIDRs,omitempty"`

	// LogLevel is the level of the log. Defaults to info.
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default="info"
	// +optional
	LogLevel *string `json:"logLevel,omitempty"`
}

// ProjectQuotaConfiguration is a resource quota for the namespaces of projects.
type ProjectQuotaConfiguration struct {
	// Config is the ResourceQuota that is created in the namespace.
	Config corev1.ResourceQuota `json:"config"`

	// ProjectSelector selects the projects. Unset means all of them.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// GardenerSchedulerConfig configures the gardener-scheduler.
type GardenerSchedulerConfig struct {
	// FeatureGates are feature gates by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// Strategy says how a seed is chosen: SameRegion as the shoot's, or MinimalDistance to it. Defaults to SameRegion.
	// +kubebuilder:validation:Enum=SameRegion;MinimalDistance
	// +kubebuilder:default="SameRegion"
	// +optional
	Strategy *string `json:"strategy,omitempty"`

	// LogLevel is the level of the log. Defaults to info.
	// +kubebuilder:validation:Enum=info;debug;error
	// +kubebuilder:default="info"
	// +optional
	LogLevel *string `json:"logLevel,omitempty"`
}

// GardenerDashboardConfig configures the gardener-dashboard.
type GardenerDashboardConfig struct {
	// EnableTokenLogin says whether users can log in with a token. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	EnableTokenLogin *bool `json:"enableTokenLogin,omitempty"`

	// FrontendConfigMapRef names a ConfigMap in the garden namespace with configuration of the front end, under the key
	// frontend-config.yaml.
	// +optional
	FrontendConfigMapRef *corev1.LocalObjectReference `json:"frontendConfigMapRef,omitempty"`

	// AssetsConfigMapRef names a ConfigMap in the garden namespace with logos and icons in its binary data, such as
	// logo.svg.
	// +optional
	AssetsConfigMapRef *corev1.LocalObjectReference `json:"assetsConfigMapRef,omitempty"`

	// GitHub connects the dashboard to tickets in GitHub.
	// +optional
	GitHub *DashboardGitHub `json:"gitHub,omitempty"`

	// LogLevel is the level of the log. Defaults to info.
	// +kubebuilder:validation:Enum=trace;debug;info;warn;error
	// +kubebuilder:default="info"
	// +optional
	LogLevel *string `json:"logLevel,omitempty"`

	// OIDCConfig lets users log in at an OpenID Connect issuer.
	// +optional
	OIDCConfig *DashboardOIDC `json:"oidcConfig,omitempty"`

	// Terminal is about terminals in the browser. Unset means that there are none.
	// +optional
	Terminal *DashboardTerminal `json:"terminal,omitempty"`

	// Domain is the domain of the dashboard. Unset means "dashboard" below the ingress domain.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`

	// TLSSecretName is the name of a Secret in the garden namespace with the certificate for the domain. Unset, the
	// certificate is generated.
	// +optional
	TLSSecretName *string `json:"tlsSecretName,omitempty"`

	// Ingress is about the Ingress. Deprecated: has no effect any more.
	// +optional
	Ingress *DashboardIngress `json:"ingress,omitempty"`

	// PropagateCAFromSNI says whether the dashboard publishes the CA of the API server's SNI
	// certificate in kubeconfigs.
	// +optional
	PropagateCAFromSNI *bool `json:"propagateCAFromSNI,omitempty"`
}

// DashboardIngress is about the Ingress of the dashboard. Deprecated: has no effect any more.
type DashboardIngress struct {
	// Enabled says whether there is an Ingress. Deprecated: has no effect any more. Defaults to true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// DashboardGitHub connects the dashboard to tickets in GitHub.
type DashboardGitHub struct {
	// APIURL is the URL of GitHub's API. Defaults to https://api.github.com.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:default="https://api.github.com"
	APIURL string `json:"apiURL"`

	// Organisation is the owner of the repository.
	// +kubebuilder:validation:MinLength=1
	Organisation string `json:"organisation"`

	// Repository is the repository.
	// +kubebuilder:validation:MinLength=1
	Repository string `json:"repository"`

	// SecretRef names the Secret in the garden namespace with the credentials for GitHub: authentication.token, or appId,
	// clientId, clientSecret, installationId and privateKey below authentication; and webhookSecret if GitHub calls the
	// dashboard.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`

	// PollInterval is the time between two checks the tickets. Unset means that only webhooks bring news.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
}

// DashboardOIDC lets users log in at an OpenID Connect issuer.
type DashboardOIDC struct {
	// ClientIDPublic is the client ID in kubeconfigs that the dashboard hands out.
	// +kubebuilder:validation:MinLength=1
	// +optional
	ClientIDPublic *string `json:"clientIDPublic,omitempty"`

	// IssuerURL is the URL of the issuer.
	// +kubebuilder:validation:MinLength=1
	// +optional
	IssuerURL *string `json:"issuerURL,omitempty"`

	// SessionLifetime is after how long users must log in again.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	SessionLifetime *metav1.Duration `json:"sessionLifetime,omitempty"`

	// AdditionalScopes are scopes that are requested, beyond openid and email.
	// +optional
	AdditionalScopes []string `json:"additionalScopes,omitempty"`

	// SecretRef names the Secret in the garden namespace with client_id and, unless the client is a public one,
	// client_secret.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`

	// CertificateAuthoritySecretRef names the Secret in the garden namespace with the CA of the issuer,
	// under the key ca.crt.
	// +optional
	CertificateAuthoritySecretRef *corev1.LocalObjectReference `json:"certificateAuthoritySecretRef,omitempty"`
}

// DashboardTerminal is about terminals in the browser.
type DashboardTerminal struct {
	// Container is the container that terminals run.
	Container DashboardTerminalContainer `json:"container"`

	// AllowedHosts are the hosts, where * stands for anything, that terminals may connect to.
	// +optional
	AllowedHosts []string `json:"allowedHosts,omitempty"`
}

// DashboardTerminalContainer is the container that terminals run.
type DashboardTerminalContainer struct {
	// Image is the image.
	Image string `json:"image"`

	// Description says what the container is for.
	// +optional
	Description *string `json:"description,omitempty"`
}

// GardenerDiscoveryServerConfig configures the gardener-discovery-server.
type GardenerDiscoveryServerConfig struct {
	// Domain is its domain. Unset means "discovery" below the ingress domain.
	// +optional
	Domain *DNSDomain `json:"domain,omitempty"`

	// TLSSecretName is the name of a Secret in the garden namespace with the certificate for the domain. Unset, the
	// certificate is generated.
	// +optional
	TLSSecretName *string `json:"tlsSecretName,omitempty"`
}

// GardenerResourceManagerConfig configures the gardener-resource-manager of the virtual garden.
type GardenerResourceManagerConfig struct {
	// AdditionalTargetNamespaces are namespaces, beyond its usual ones, in which it may manage objects.
	// +optional
	AdditionalTargetNamespaces []string `json:"additionalTargetNamespaces,omitempty"`
}

// ResourceAdmissionWebhookMode says what happens to requests that exceed a limit.
type ResourceAdmissionWebhookMode string

const (
	// AdmissionModeBlock refuses them.
	AdmissionModeBlock ResourceAdmissionWebhookMode = "block"
	// AdmissionModeLog lets them through and logs them.
	AdmissionModeLog ResourceAdmissionWebhookMode = "log"
)
