package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KubeAPIServerConfig configures the kube-apiserver.
type KubeAPIServerConfig struct {
	// KubernetesConfig is what all Kubernetes components have in common.
	KubernetesConfig `json:",inline" protobuf:"bytes,1,opt,name=kubernetesConfig"`
	// AdmissionPlugins turns admission plugins on or off and configures them.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=admissionPlugins"`
	// APIAudiences are the audiences of tokens that the API server accepts. "kubernetes" and "gardener" if unset.
	// +optional
	APIAudiences []string `json:"apiAudiences,omitempty" protobuf:"bytes,3,rep,name=apiAudiences"`
	// AuditConfig says what is audited.
	// +optional
	AuditConfig *AuditConfig `json:"auditConfig,omitempty" protobuf:"bytes,4,opt,name=auditConfig"`
	// RuntimeConfig turns API groups and versions on or off, such as "batch/v2alpha1".
	// +optional
	RuntimeConfig map[string]bool `json:"runtimeConfig,omitempty" protobuf:"bytes,7,rep,name=runtimeConfig"`
	// ServiceAccountConfig configures service accounts.
	// +optional
	ServiceAccountConfig *ServiceAccountConfig `json:"serviceAccountConfig,omitempty" protobuf:"bytes,8,opt,name=serviceAccountConfig"`
	// WatchCacheSizes are the sizes of the watch caches.
	// +optional
	WatchCacheSizes *WatchCacheSizes `json:"watchCacheSizes,omitempty" protobuf:"bytes,9,opt,name=watchCacheSizes"`
	// Requests bounds the requests in flight.
	// +optional
	Requests *APIServerRequests `json:"requests,omitempty" protobuf:"bytes,10,opt,name=requests"`
	// EnableAnonymousAuthentication lets requests without credentials in.
	//
	// Deprecated: Refused from Kubernetes 1.35: use structuredAuthentication.
	// +optional
	EnableAnonymousAuthentication *bool `json:"enableAnonymousAuthentication,omitempty" protobuf:"varint,11,opt,name=enableAnonymousAuthentication"`
	// EventTTL is how long events are kept. "1h" is the default; at most a day.
	// +optional
	EventTTL *metav1.Duration `json:"eventTTL,omitempty" protobuf:"bytes,12,opt,name=eventTTL"`
	// Logging configures the log.
	// +optional
	Logging *APIServerLogging `json:"logging,omitempty" protobuf:"bytes,13,opt,name=logging"`
	// DefaultNotReadyTolerationSeconds is how long pods stay on a node that is not ready, in seconds, if they say
	// nothing themselves. 300 is the default.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty" protobuf:"varint,14,opt,name=defaultNotReadyTolerationSeconds"`
	// DefaultUnreachableTolerationSeconds is how long pods stay on a node that cannot be reached, in seconds, if they
	// say nothing themselves. 300 is the default.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty" protobuf:"varint,15,opt,name=defaultUnreachableTolerationSeconds"`
	// EncryptionConfig says what is encrypted in etcd.
	// +optional
	EncryptionConfig *EncryptionConfig `json:"encryptionConfig,omitempty" protobuf:"bytes,16,opt,name=encryptionConfig"`
	// StructuredAuthentication points to a structured authentication configuration.
	// +optional
	StructuredAuthentication *StructuredAuthentication `json:"structuredAuthentication,omitempty" protobuf:"bytes,17,opt,name=structuredAuthentication"`
	// StructuredAuthorization points to a structured authorization configuration.
	// +optional
	StructuredAuthorization *StructuredAuthorization `json:"structuredAuthorization,omitempty" protobuf:"bytes,18,opt,name=structuredAuthorization"`
	// Autoscaling bounds the vertical scaling.
	// +optional
	Autoscaling *ControlPlaneAutoscaling `json:"autoscaling,omitempty" protobuf:"bytes,19,opt,name=autoscaling"`
	// TLSMinVersion is the lowest TLS version of the kube-apiserver: "VersionTLS12" or "VersionTLS13".
	// +optional
	TLSMinVersion *string `json:"tlsMinVersion,omitempty" protobuf:"bytes,20,opt,name=tlsMinVersion"`
	// OIDCConfig makes the API server accept ID tokens of one OpenID Connect provider.
	//
	// Deprecated: Refused from Kubernetes 1.32: use structuredAuthentication.
	// +optional
	OIDCConfig *OIDCConfig `json:"oidcConfig,omitempty" protobuf:"bytes,5,opt,name=oidcConfig"`
}

// AdmissionPlugin turns an admission plugin on or off and configures it.
type AdmissionPlugin struct {
	// Name is the name of the plugin.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Config is the configuration of the plugin.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// Disabled turns the plugin off. Not possible for plugins that Gardener relies on.
	// +optional
	Disabled *bool `json:"disabled,omitempty" protobuf:"varint,3,opt,name=disabled"`
	// KubeconfigSecretName is a Secret in the project namespace with a kubeconfig for the plugin, to be listed in
	// spec.resources.
	// +optional
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty" protobuf:"bytes,4,opt,name=kubeconfigSecretName"`
}

// AuditConfig says what is audited.
type AuditConfig struct {
	// AuditPolicy is the audit policy.
	// +optional
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty" protobuf:"bytes,1,opt,name=auditPolicy"`
}

// AuditPolicy is an audit policy.
type AuditPolicy struct {
	// ConfigMapRef is a ConfigMap in the project namespace with the policy in the key "policy". When its resource
	// version changes, the policy is applied in the next reconciliation.
	// +optional
	ConfigMapRef *corev1.ObjectReference `json:"configMapRef,omitempty" protobuf:"bytes,1,opt,name=configMapRef"`
}

// OIDCConfig makes a kube-apiserver accept ID tokens of one OpenID Connect provider.
type OIDCConfig struct {
	// CABundle is the CA bundle of the provider in PEM form. That of the system if unset.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// ClientAuthentication is for clients, which may read it from here. The API server does not use it.
	// +optional
	ClientAuthentication *OpenIDConnectClientAuthentication `json:"clientAuthentication,omitempty" protobuf:"bytes,2,opt,name=clientAuthentication"`
	// ClientID is the client that tokens must be issued for. Needed if issuerURL is set.
	// +optional
	ClientID *string `json:"clientID,omitempty" protobuf:"bytes,3,opt,name=clientID"`
	// GroupsClaim is the claim with the groups of the user.
	// +optional
	GroupsClaim *string `json:"groupsClaim,omitempty" protobuf:"bytes,4,opt,name=groupsClaim"`
	// GroupsPrefix is put before each group.
	// +optional
	GroupsPrefix *string `json:"groupsPrefix,omitempty" protobuf:"bytes,5,opt,name=groupsPrefix"`
	// IssuerURL is the URL of the provider, with the scheme https. Needed if clientID is set.
	// +optional
	IssuerURL *string `json:"issuerURL,omitempty" protobuf:"bytes,6,opt,name=issuerURL"`
	// RequiredClaims are claims that a token must have with these values.
	// +optional
	RequiredClaims map[string]string `json:"requiredClaims,omitempty" protobuf:"bytes,7,rep,name=requiredClaims"`
	// SigningAlgs are the accepted algorithms of signatures. [RS256] if unset.
	// +optional
	SigningAlgs []string `json:"signingAlgs,omitempty" protobuf:"bytes,8,rep,name=signingAlgs"`
	// UsernameClaim is the claim with the name of the user. "sub" if unset.
	// +optional
	UsernameClaim *string `json:"usernameClaim,omitempty" protobuf:"bytes,9,opt,name=usernameClaim"`
	// UsernamePrefix is put before the name. The issuer URL and "#" if unset; "-" stands for none.
	// +optional
	UsernamePrefix *string `json:"usernamePrefix,omitempty" protobuf:"bytes,10,opt,name=usernamePrefix"`
}

// OpenIDConnectClientAuthentication is what clients need to get tokens.
type OpenIDConnectClientAuthentication struct {
	// ExtraConfig is further configuration for the client plugin. Keys that a field exists for are refused.
	// +optional
	ExtraConfig map[string]string `json:"extraConfig,omitempty" protobuf:"bytes,1,rep,name=extraConfig"`
	// Secret is the client secret.
	// +optional
	Secret *string `json:"secret,omitempty" protobuf:"bytes,2,opt,name=secret"`
}

// ServiceAccountConfig configures service accounts.
type ServiceAccountConfig struct {
	// Issuer is the issuer of service account tokens, as URL. The address of the API server if unset; a new value is
	// used beside the old ones in acceptedIssuers.
	// +optional
	Issuer *string `json:"issuer,omitempty" protobuf:"bytes,1,opt,name=issuer"`
	// ExtendTokenExpiration makes injected tokens valid for longer than requested, for clients that do not reload them.
	// True if unset.
	// +optional
	ExtendTokenExpiration *bool `json:"extendTokenExpiration,omitempty" protobuf:"varint,3,opt,name=extendTokenExpiration"`
	// MaxTokenExpiration is the longest lifetime of a token: between 30 and 90 days.
	// +optional
	MaxTokenExpiration *metav1.Duration `json:"maxTokenExpiration,omitempty" protobuf:"bytes,4,opt,name=maxTokenExpiration"`
	// AcceptedIssuers are further issuers whose tokens are accepted. Unique, and without the issuer.
	// +optional
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty" protobuf:"bytes,5,rep,name=acceptedIssuers"`
}

// WatchCacheSizes are the sizes of watch caches.
type WatchCacheSizes struct {
	// Default is the size for resources that are not listed.
	//
	// Deprecated: Not used any more, as the size adapts itself.
	// +optional
	Default *int32 `json:"default,omitempty" protobuf:"varint,1,opt,name=default"`
	// Resources are the sizes by resource.
	// +optional
	Resources []ResourceWatchCacheSize `json:"resources,omitempty" protobuf:"bytes,2,rep,name=resources"`
}

// ResourceWatchCacheSize is the size of one resource's watch cache.
type ResourceWatchCacheSize struct {
	// APIGroup is the API group of the resource. The core group if unset.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Resource is the resource in the plural.
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`
	// CacheSize is the number of events to keep. 0 turns the cache off; any other value turns it on.
	CacheSize int32 `json:"size" protobuf:"varint,3,opt,name=size"`
}

// APIServerRequests bounds the requests in flight.
type APIServerRequests struct {
	// MaxNonMutatingInflight bounds the reading requests. 400 is the default; at most 5000.
	// +optional
	MaxNonMutatingInflight *int32 `json:"maxNonMutatingInflight,omitempty" protobuf:"varint,1,opt,name=maxNonMutatingInflight"`
	// MaxMutatingInflight bounds the writing requests. 200 is the default; at most 2500.
	// +optional
	MaxMutatingInflight *int32 `json:"maxMutatingInflight,omitempty" protobuf:"varint,2,opt,name=maxMutatingInflight"`
}

// APIServerLogging configures the log of an API server.
type APIServerLogging struct {
	// Verbosity is the level of the log. 2 is the default.
	// +optional
	Verbosity *int32 `json:"verbosity,omitempty" protobuf:"varint,1,opt,name=verbosity"`
	// HTTPAccessVerbosity is the level of the access log.
	// +optional
	HTTPAccessVerbosity *int32 `json:"httpAccessVerbosity,omitempty" protobuf:"varint,2,opt,name=httpAccessVerbosity"`
}

// EncryptionConfig says what is encrypted in etcd.
type EncryptionConfig struct {
	// Resources are the resources that are encrypted besides secrets, such as "configmaps" or
	// "shoots.core.gardener.cloud". "*.group" and "*.*" are not possible.
	// +optional
	Resources []string `json:"resources,omitempty" protobuf:"bytes,1,rep,name=resources"`
	// Provider says how they are encrypted.
	Provider EncryptionProvider `json:"provider" protobuf:"bytes,2,opt,name=provider"`
}

// EncryptionProvider says how resources are encrypted.
type EncryptionProvider struct {
	// Type is the method. "aescbc" is the default.
	// +optional
	Type *EncryptionProviderType `json:"type,omitempty" protobuf:"bytes,1,opt,name=type,casttype=EncryptionProviderType"`
}

// EncryptionProviderType is a method of encryption.
type EncryptionProviderType string

const (
	// EncryptionProviderTypeAESCBC is AES-CBC with PKCS#7 padding.
	EncryptionProviderTypeAESCBC EncryptionProviderType = "aescbc"
	// EncryptionProviderTypeAESGCM is AES-GCM with a random nonce.
	EncryptionProviderTypeAESGCM EncryptionProviderType = "aesgcm"
	// EncryptionProviderTypeSecretbox is XSalsa20 with Poly1305.
	EncryptionProviderTypeSecretbox EncryptionProviderType = "secretbox"
)

// StructuredAuthentication points to a structured authentication configuration.
type StructuredAuthentication struct {
	// ConfigMapName is a ConfigMap in the project namespace with the configuration in the key "config.yaml".
	ConfigMapName string `json:"configMapName" protobuf:"bytes,1,opt,name=configMapName"`
}

// StructuredAuthorization points to a structured authorization configuration.
type StructuredAuthorization struct {
	// ConfigMapName is a ConfigMap in the project namespace with the configuration in the key "config.yaml".
	ConfigMapName string `json:"configMapName" protobuf:"bytes,1,opt,name=configMapName"`
	// Kubeconfigs are the kubeconfigs for the webhooks that the configuration names.
	Kubeconfigs []AuthorizerKubeconfigReference `json:"kubeconfigs" protobuf:"bytes,2,rep,name=kubeconfigs"`
}

// AuthorizerKubeconfigReference is the kubeconfig for one webhook authorizer.
type AuthorizerKubeconfigReference struct {
	// AuthorizerName is the name of the authorizer in the configuration.
	AuthorizerName string `json:"authorizerName" protobuf:"bytes,1,opt,name=authorizerName"`
	// SecretName is a Secret in the project namespace with the kubeconfig in the key "kubeconfig".
	SecretName string `json:"secretName" protobuf:"bytes,2,opt,name=secretName"`
}
