package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// VirtualCluster describes the cluster that the garden offers.
type VirtualCluster struct {
	// ControlPlane is about the control plane as a whole.
	// +optional
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`

	// DNS is about the domains of the API server.
	DNS DNS `json:"dns"`

	// ETCD is about its two etcds.
	// +optional
	ETCD *ETCD `json:"etcd,omitempty"`

	// Gardener is about the components of Gardener.
	Gardener Gardener `json:"gardener"`

	// Kubernetes is about the components of Kubernetes.
	Kubernetes Kubernetes `json:"kubernetes"`

	// Maintenance says when disruptive changes are possible.
	Maintenance Maintenance `json:"maintenance"`

	// Networking lists the networks of the cluster.
	Networking Networking `json:"networking"`
}

// ControlPlane is about the control plane as a whole.
type ControlPlane struct {
	// HighAvailability makes the control plane survive the loss of a node and, if the runtime cluster has several zones,
	// of a zone. It cannot be removed again.
	// +optional
	HighAvailability *HighAvailability `json:"highAvailability,omitempty"`
}

// HighAvailability requests a highly available control plane. It has no fields.
type HighAvailability struct{}

// DNS is about the domains of the API server.
type DNS struct {
	// Domains are the domains. The API server is reached under api.<domain> and gardener.<domain>; components use the
	// first one. Immutable.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="domains is immutable"
	// +optional
	Domains []DNSDomain `json:"domains,omitempty"`
}

// ETCD is about the etcds of the virtual garden.
type ETCD struct {
	// Main is about the etcd for everything but events.
	// +optional
	Main *ETCDMain `json:"main,omitempty"`

	// Events is about the etcd for events.
	// +optional
	Events *ETCDEvents `json:"events,omitempty"`
}

// ETCDMain is about the etcd for everything but events.
type ETCDMain struct {
	// Autoscaling is about its vertical autoscaling.
	// +optional
	Autoscaling *corev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`

	// Backup says where its backups go. Unset means that there are none.
	// +optional
	Backup *Backup `json:"backup,omitempty"`

	// Storage is about its volumes.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// ETCDEvents is about the etcd for events. It has no backup.
type ETCDEvents struct {
	// Autoscaling is about its vertical autoscaling.
	// +optional
	Autoscaling *corev1beta1.ControlPlaneAutoscaling `json:"autoscaling,omitempty"`

	// Storage is about its volumes.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
}

// Storage is about the volumes of an etcd.
type Storage struct {
	// Capacity is their size when the etcd is created. Defaults to 25Gi for the main etcd, and to 10Gi for the one of events.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// ClassName is their StorageClass. Unset means the cluster's default.
	// +optional
	ClassName *string `json:"className,omitempty"`
}

// Backup says where backups go.
// +kubebuilder:validation:XValidation:rule="has(self.bucketName) == has(oldSelf.bucketName)",message="bucketName can neither be added nor removed"
// +kubebuilder:validation:XValidation:rule="has(self.region) == has(oldSelf.region)",message="region can neither be added nor removed"
type Backup struct {
	// Provider is the type of object store, as in BackupBucket resources. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provider is immutable"
	Provider string `json:"provider"`

	// BucketName is the name of a bucket that exists. Unset, an extension creates one. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="bucketName is immutable"
	// +optional
	BucketName *string `json:"bucketName,omitempty"`

	// ProviderConfig is configuration for the extension that creates the bucket. Not allowed with bucketName.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`

	// Region is the region of the bucket. Unset means the region of the runtime cluster. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region is immutable"
	// +optional
	Region *string `json:"region,omitempty"`

	// SecretRef names the Secret in the garden namespace with the credentials for the object store.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// Maintenance says when disruptive changes are possible.
type Maintenance struct {
	// TimeWindow is the daily time window, between 30 minutes and 6 hours long.
	TimeWindow corev1beta1.MaintenanceTimeWindow `json:"timeWindow"`
}

// Networking lists the networks of the virtual cluster.
type Networking struct {
	// Services are the networks of services, as CIDRs, one or two of different IP families. Networks may be added, but not
	// changed.
	// +kubebuilder:validation:MinItems=1
	Services []string `json:"services"`
}

// Kubernetes is about the components of Kubernetes.
type Kubernetes struct {
	// KubeAPIServer configures the kube-apiserver.
	// +optional
	KubeAPIServer *KubeAPIServerConfig `json:"kubeAPIServer,omitempty"`

	// KubeControllerManager configures the kube-controller-manager.
	// +optional
	KubeControllerManager *KubeControllerManagerConfig `json:"kubeControllerManager,omitempty"`

	// Version is the Kubernetes version. It cannot go back, nor skip a minor version.
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// KubeAPIServerConfig configures the kube-apiserver: what can be set for shoots too, and what follows.
type KubeAPIServerConfig struct {
	// The fields of KubeAPIServerConfig belong here too.
	corev1beta1.KubeAPIServerConfig `json:",inline"`

	// AuditWebhook sends audit events to a server.
	// +optional
	AuditWebhook *AuditWebhook `json:"auditWebhook,omitempty"`

	// Authentication is about further ways to authenticate.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// ResourcesToStoreInETCDEvents lists resources that are stored in the etcd for events, besides events. Their data is
	// not backed up. It cannot be changed without losing objects.
	// +optional
	ResourcesToStoreInETCDEvents []GroupResource `json:"resourcesToStoreInETCDEvents,omitempty"`

	// SNI is about certificates for further names.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
}

// AuditWebhook sends audit events to a server.
type AuditWebhook struct {
	// BatchMaxSize is the most events that are sent at once. Defaults to 30.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=30
	// +optional
	BatchMaxSize *int32 `json:"batchMaxSize,omitempty"`

	// KubeconfigSecretName is the name of the Secret with the kubeconfig for the server, under the key kubeconfig.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`

	// Version is the version of the events' API. Defaults to audit.k8s.io/v1.
	// +kubebuilder:validation:Enum=audit.k8s.io/v1
	// +kubebuilder:default="audit.k8s.io/v1"
	// +optional
	Version *string `json:"version,omitempty"`
}

// Authentication is about further ways to authenticate.
type Authentication struct {
	// Webhook authenticates tokens with a server.
	// +optional
	Webhook *AuthenticationWebhook `json:"webhook,omitempty"`
}

// AuthenticationWebhook authenticates tokens with a server.
type AuthenticationWebhook struct {
	// CacheTTL is how long answers are remembered.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +optional
	CacheTTL *metav1.Duration `json:"cacheTTL,omitempty"`

	// KubeconfigSecretName is the name of the Secret with the kubeconfig for the server, under the key kubeconfig.
	// +kubebuilder:validation:MinLength=1
	KubeconfigSecretName string `json:"kubeconfigSecretName"`

	// Version is the version of the TokenReview API that the server understands. Defaults to v1beta1.
	// +kubebuilder:validation:Enum=v1alpha1;v1beta1;v1
	// +kubebuilder:default="v1beta1"
	// +optional
	Version *string `json:"version,omitempty"`
}

// GroupResource names a resource.
type GroupResource struct {
	// Group is the API group.
	// +kubebuilder:validation:MinLength=1
	Group string `json:"group"`

	// Resource is the resource, in its plural form.
	// +kubebuilder:validation:MinLength=1
	Resource string `json:"resource"`
}

// SNI is about certificates for further names.
type SNI struct {
	// SecretName is the name of a Secret in the garden namespace with tls.crt and tls.key. Unset means the one that has the
	// label gardener.cloud/role=garden-cert.
	// +kubebuilder:validation:MinLength=1
	// +optional
	SecretName *string `json:"secretName,omitempty"`

	// DomainPatterns are the names, such as *.example.com, that the certificate is presented for. At least one is needed, and
	// none may match api. of the first domain.
	// +optional
	DomainPatterns []string `json:"domainPatterns,omitempty"`
}

// KubeControllerManagerConfig configures the kube-controller-manager: what can be set for shoots too, and what
// follows.
type KubeControllerManagerConfig struct {
	// The fields of KubeControllerManagerConfig belong here too.
	corev1beta1.KubeControllerManagerConfig `json:",inline"`

	// CertificateSigningDuration is the longest validity of certificates that are signed. Defaults to 48h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="48h"
	// +optional
	CertificateSigningDuration *metav1.Duration `json:"certificateSigningDuration,omitempty"`
}
