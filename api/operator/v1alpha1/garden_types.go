package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	// VirtualGardenAPIServerAvailable says whether the kube-apiserver of the virtual garden is available.
	VirtualGardenAPIServerAvailable corev1beta1.ConditionType = "VirtualGardenAPIServerAvailable"
	// RuntimeComponentsHealthy says whether what serves the runtime cluster is healthy.
	RuntimeComponentsHealthy corev1beta1.ConditionType = "RuntimeComponentsHealthy"
	// VirtualComponentsHealthy says whether what serves the virtual garden is healthy.
	VirtualComponentsHealthy corev1beta1.ConditionType = "VirtualComponentsHealthy"
	// ObservabilityComponentsHealthy says whether monitoring and logging are healthy.
	ObservabilityComponentsHealthy corev1beta1.ConditionType = "ObservabilityComponentsHealthy"
	// GardenletsUpdated says whether the Gardenlets that follow gardener-operator have the chart of its release. A Garden has it if there are
	// such Gardenlets. Its writer is the controller that updates them.
	GardenletsUpdated corev1beta1.ConditionType = "GardenletsUpdated"
	// CACertificateValiditiesAcceptable says whether the CAs that only operations renew are valid for at least a year more. A Garden has it while they are
	// not, as a Shoot has the constraint of this name.
	CACertificateValiditiesAcceptable corev1beta1.ConditionType = "CACertificateValiditiesAcceptable"
)

// Reasons of the condition GardenletsUpdated.
const (
	// ReasonGardenletsCurrent means that all have the chart.
	ReasonGardenletsCurrent = "GardenletsCurrent"
	// ReasonGardenletsUpdating means that waves are in progress.
	ReasonGardenletsUpdating = "GardenletsUpdating"
	// ReasonGardenletUpdatesHeld means that a wave does not pass, so that no further gardenlet is updated. It is the reason of an event, too.
	ReasonGardenletUpdatesHeld = "GardenletUpdatesHeld"
	// ReasonGardenletsTooOld means that some gardenlets are older than the previous minor version.
	ReasonGardenletsTooOld = "GardenletsTooOld"
	// ReasonGardenletsOwnImage means that some gardenlets are left out, as their Gardenlets have an image of their own.
	ReasonGardenletsOwnImage = "GardenletsOwnImage"
	// ReasonGardenNotReconciled means that the Garden was not reconciled by this version of gardener-operator yet, which updates no gardenlet before.
	ReasonGardenNotReconciled = "GardenNotReconciled"
)

const (
	// FinalizerName keeps objects until the gardener-operator has undone what it did for them.
	FinalizerName = "gardener.cloud/operator"
	// ForceDeletion is the annotation of a Garden that lets it be deleted with the value "true" although its virtual garden cannot be checked for
	// Seeds and Shoots. These are lost then.
	ForceDeletion = "operator.gardener.cloud/force-deletion"
	// SecretNameCARuntime is the name of the CA that signs certificates of the runtime cluster's components.
	SecretNameCARuntime = "ca-garden-runtime"
	// SecretNameCAGardener is the name of the CA that signs certificates of Gardener's components.
	SecretNameCAGardener = "ca-gardener"
	// SecretNameWorkloadIdentityKey is the name of the key that signs the tokens of workload identities.
	SecretNameWorkloadIdentityKey = "gardener-apiserver-workload-identity-signing-key"
	// SecretNameGardenerETCDEncryptionKey is the name of the key for what gardener-apiserver stores in etcd.
	SecretNameGardenerETCDEncryptionKey = "gardener-apiserver-etcd-encryption-key"
	// SecretNamePrefixGardenerETCDEncryptionConfiguration begins the name of the configuration that says how this is encrypted, and is its role.
	SecretNamePrefixGardenerETCDEncryptionConfiguration = "gardener-apiserver-etcd-encryption-configuration"
	// SecretNameObservabilityIngress is the name of the credentials with which operators reach the monitoring.
	SecretNameObservabilityIngress = "observability-ingress"
	// VirtualGardenNamePrefix is what names of the virtual garden's control plane objects start with.
	VirtualGardenNamePrefix = "virtual-garden-"
	// SecretManagerIdentityOperator is the identity under which the gardener-operator manages generated secrets.
	SecretManagerIdentityOperator = "gardener-operator"
	// AdvertisedAddressVirtualGarden is the name of the advertised address of the virtual garden's API server.
	AdvertisedAddressVirtualGarden = "virtual-garden"
	// LabelExtensionName on an object that was created for an Extension is the name of the Extension.
	LabelExtensionName = "extensions.operator.gardener.cloud/name"
	// LabelKeyGardenletAutoUpdates marks Gardenlets whose chart reference follows the version of the gardener-operator.
	LabelKeyGardenletAutoUpdates = "operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref"
	// AnnotationRuntimeClusterGardenlet on the Garden is the name of the only Gardenlet that may be deployed into the runtime cluster. Without it, this
	// is the first one that has no kubeconfig for another cluster.
	AnnotationRuntimeClusterGardenlet = "operator.gardener.cloud/runtime-cluster-gardenlet"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gardens,singular=garden,scope=Cluster,shortName=grdn
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="K8S Version",type=string,JSONPath=".spec.virtualCluster.kubernetes.version"
// +kubebuilder:printcolumn:name="Gardener Version",type=string,JSONPath=".status.gardener.version"
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=".status.lastOperation.state"
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RuntimeComponentsHealthy")].status`
// +kubebuilder:printcolumn:name="Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualComponentsHealthy")].status`
// +kubebuilder:printcolumn:name="API Server",type=string,JSONPath=`.status.conditions[?(@.type=="VirtualGardenAPIServerAvailable")].status`
// +kubebuilder:printcolumn:name="Observability",type=string,JSONPath=`.status.conditions[?(@.type=="ObservabilityComponentsHealthy")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Garden describes a whole garden: the runtime cluster it runs in, and the virtual cluster with the Gardener API that
// it offers.
type Garden struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the garden shall be like. Written by operators.
	// +optional
	Spec GardenSpec `json:"spec,omitempty"`

	// Status says how it is. Written by the gardener-operator.
	// +optional
	Status GardenStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// GardenList is a list of Garden objects.
type GardenList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Garden `json:"items"`
}

// GardenSpec says what a garden shall be like.
type GardenSpec struct {
	// DNS lists the DNS providers for the domains of the garden.
	// +optional
	DNS *DNSManagement `json:"dns,omitempty"`

	// Extensions lists additions to the garden itself, which become Extension resources in the runtime cluster.
	// +optional
	Extensions []GardenExtension `json:"extensions,omitempty"`

	// RuntimeCluster describes the cluster that the garden runs in.
	RuntimeCluster RuntimeCluster `json:"runtimeCluster"`

	// VirtualCluster describes the cluster that the garden offers.
	VirtualCluster VirtualCluster `json:"virtualCluster"`

	// Resources names Secrets and ConfigMaps of the garden namespace that providerConfig of extensions refers to.
	// +optional
	Resources []corev1beta1.NamedResourceReference `json:"resources,omitempty"`
}

// DNSManagement lists DNS providers.
type DNSManagement struct {
	// Providers are the providers, each with a name of its own. The first one is used for domains that name none.
	// +kubebuilder:validation:MinItems=1
	Providers []DNSProvider `json:"providers"`
}

// DNSProvider is a DNS provider with credentials.
type DNSProvider struct {
	// Name is how domains refer to the provider.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Type is the type of DNSRecord extension that is responsible, such as "local".
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`

	// ProviderConfig is configuration for the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`

	// SecretRef names the Secret in the garden namespace with the credentials for the provider.
	SecretRef corev1.LocalObjectReference `json:"secretRef"`
}

// GardenExtension is an addition to the garden.
type GardenExtension struct {
	// Type is the type of Extension resource.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`

	// ProviderConfig is configuration for the extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// GardenStatus says how a garden is.
type GardenStatus struct {
	// Gardener is the gardener-operator that acted last.
	// +optional
	Gardener *corev1beta1.Gardener `json:"gardener,omitempty"`

	// Conditions are the conditions of the garden.
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`

	// LastOperation describes what is done at the moment or was done last.
	// +optional
	LastOperation *corev1beta1.LastOperation `json:"lastOperation,omitempty"`

	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Credentials says how old the credentials are, and how far their rotation came.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`

	// AdvertisedAddresses lists the URLs under which the garden can be reached. The API server's is named virtual-garden.
	// +optional
	AdvertisedAddresses []AdvertisedAddress `json:"advertisedAddresses,omitempty"`
}

// Credentials says how far the rotation of credentials came.
type Credentials struct {
	// Rotation is about each kind of credentials.
	// +optional
	Rotation *CredentialsRotation `json:"rotation,omitempty"`

	// EncryptionAtRest says what is stored encrypted at the moment.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// CredentialsRotation says how far the rotation of each kind of credentials came.
type CredentialsRotation struct {
	// CertificateAuthorities is the rotation of the CAs.
	// +optional
	CertificateAuthorities *corev1beta1.CARotation `json:"certificateAuthorities,omitempty"`

	// ServiceAccountKey is about the key that signs service account tokens.
	// +optional
	ServiceAccountKey *corev1beta1.ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`

	// ETCDEncryptionKey is about the key that data in etcd is encrypted with.
	// +optional
	ETCDEncryptionKey *corev1beta1.ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`

	// Observability is about the passwords for monitoring and logging.
	// +optional
	Observability *corev1beta1.ObservabilityRotation `json:"observability,omitempty"`

	// WorkloadIdentityKey is about the key that signs the tokens of workload identities.
	// +optional
	WorkloadIdentityKey *WorkloadIdentityKeyRotation `json:"workloadIdentityKey,omitempty"`
}

// WorkloadIdentityKeyRotation says how far the rotation of the key that signs the tokens of workload identities came.
type WorkloadIdentityKeyRotation struct {
	// Phase is the phase of the rotation.
	Phase corev1beta1.CredentialsRotationPhase `json:"phase"`

	// LastCompletionTime is when it was completed last.
	// +optional
	LastCompletionTime *metav1.Time `json:"lastCompletionTime,omitempty"`

	// LastInitiationTime is when it was started last.
	// +optional
	LastInitiationTime *metav1.Time `json:"lastInitiationTime,omitempty"`

	// LastInitiationFinishedTime is when the first half was finished last.
	// +optional
	LastInitiationFinishedTime *metav1.Time `json:"lastInitiationFinishedTime,omitempty"`

	// LastCompletionTriggeredTime is when the second half was started last.
	// +optional
	LastCompletionTriggeredTime *metav1.Time `json:"lastCompletionTriggeredTime,omitempty"`
}

// EncryptionAtRest says what is stored encrypted.
type EncryptionAtRest struct {
	// Resources lists the resources that are encrypted at the moment, beyond Secrets.
	// +optional
	Resources []string `json:"resources,omitempty"`

	// Provider says how they are encrypted.
	Provider EncryptionProviderStatus `json:"provider"`
}

// EncryptionProviderStatus says how data is encrypted.
type EncryptionProviderStatus struct {
	// Type is aescbc, aesgcm or secretbox.
	Type corev1beta1.EncryptionProviderType `json:"type"`
}

// AdvertisedAddress is a URL under which the garden can be reached.
type AdvertisedAddress struct {
	// Name is the name of the address.
	Name string `json:"name"`

	// URL is the URL.
	URL string `json:"url"`
}
