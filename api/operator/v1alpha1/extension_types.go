package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	// ExtensionInstalled says whether the gardener-operator brought the extension to where it is required.
	ExtensionInstalled corev1beta1.ConditionType = "Installed"
	// ExtensionRequiredRuntime says whether the garden itself needs the extension in the runtime cluster.
	ExtensionRequiredRuntime corev1beta1.ConditionType = "RequiredRuntime"
	// ExtensionRequiredVirtual says whether a seed needs the extension.
	ExtensionRequiredVirtual corev1beta1.ConditionType = "RequiredVirtual"
	// ExtensionControllerInstallationsHealthy says whether all ControllerInstallations of the extension are healthy.
	ExtensionControllerInstallationsHealthy corev1beta1.ConditionType = "ControllerInstallationsHealthy"
	// ExtensionRuntimeHealthy says whether the extension's objects in the runtime cluster are healthy.
	ExtensionRuntimeHealthy corev1beta1.ConditionType = "RuntimeHealthy"
	// ExtensionAdmissionHealthy says whether the extension's admission controller is healthy.
	ExtensionAdmissionHealthy corev1beta1.ConditionType = "AdmissionHealthy"
)

// Reasons of the conditions of an Extension.
const (
	// ReasonReconcileFailed says that the last reconciliation failed.
	ReasonReconcileFailed = "ReconcileFailed"
	// ReasonReconcileSuccess says that the last reconciliation succeeded.
	ReasonReconcileSuccess = "ReconcileSuccessful"
	// ReasonDeleteFailed says that the last attempt to delete failed.
	ReasonDeleteFailed = "DeleteFailed"
	// ReasonDeleteSuccessful says that the last attempt to delete succeeded.
	ReasonDeleteSuccessful = "DeleteSuccessful"
	// ReasonNoGardenFound says that there is no Garden.
	ReasonNoGardenFound = "NoGardenFound"
	// ReasonInstalledInRuntime says that the extension is installed in the runtime cluster.
	ReasonInstalledInRuntime = "InstalledInRuntime"
)

// ExtensionRuntimeNamespacePrefix is what the namespace of an extension in the runtime cluster starts with.
const ExtensionRuntimeNamespacePrefix = "runtime-extension-"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=extensions,singular=extension,scope=Cluster,shortName=extop
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`
// +kubebuilder:printcolumn:name="Required Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredRuntime")].status`
// +kubebuilder:printcolumn:name="Required Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredVirtual")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// Extension brings an extension into a garden: the gardener-operator registers it in the virtual garden, and installs
// its admission controller and, if the garden needs it, the extension itself in the runtime cluster.
type Extension struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the extension does, and how it is deployed. Written by operators.
	// +optional
	Spec ExtensionSpec `json:"spec,omitempty"`

	// Status says how far the gardener-operator came.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ExtensionList is a list of Extension objects.
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the objects of the list.
	Items []Extension `json:"items"`
}

// ExtensionSpec says what an extension does, and how it is deployed.
type ExtensionSpec struct {
	// Resources lists the kinds and types of extension resources that the extension is responsible for.
	// +optional
	Resources []corev1beta1.ControllerResource `json:"resources,omitempty"`

	// Deployment says how the extension is deployed.
	// +optional
	Deployment *Deployment `json:"deployment,omitempty"`
}

// Deployment says how an extension is deployed.
type Deployment struct {
	// Extension is about the extension controllers, in seeds and in the runtime cluster.
	// +optional
	Extension *ExtensionDeploymentSpec `json:"extension,omitempty"`

	// Admission is about the extension's admission controller, which runs in the runtime cluster and serves the virtual
	// garden.
	// +optional
	Admission *AdmissionDeploymentSpec `json:"admission,omitempty"`

	// Resources names Secrets and ConfigMaps of the garden namespace that values refer to. Each has a name of its own.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []gardencorev1.NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ExtensionDeploymentSpec says how the extension controllers are deployed.
type ExtensionDeploymentSpec struct {
	// The fields of DeploymentSpec belong here too.
	DeploymentSpec `json:",inline"`

	// Values are the values of the chart for installations in seeds. An object.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// RuntimeClusterValues are the values of the chart for the installation in the runtime cluster. An object.
	// +optional
	RuntimeClusterValues *apiextensionsv1.JSON `json:"runtimeClusterValues,omitempty"`

	// Policy says when the extension is installed in a seed: OnDemand, Always or AlwaysExceptNoShoots. Unset means
	// OnDemand.
	// +optional
	Policy *corev1beta1.ControllerDeploymentPolicy `json:"policy,omitempty"`

	// SeedSelector selects the seeds in which the extension may be installed. Unset means every seed.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty"`

	// InjectGardenKubeconfig gives the extension's pods in seeds a kubeconfig for the garden cluster. Unset means true
	// unless the registered ControllerDeployment says otherwise.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
}

// AdmissionDeploymentSpec says how the admission controller is deployed.
type AdmissionDeploymentSpec struct {
	// RuntimeCluster is what is installed in the runtime cluster: the process itself.
	// +optional
	RuntimeCluster *DeploymentSpec `json:"runtimeCluster,omitempty"`

	// VirtualCluster is what is installed in the virtual garden: webhooks and roles.
	// +optional
	VirtualCluster *DeploymentSpec `json:"virtualCluster,omitempty"`

	// Values are the values of both charts. An object.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// DeploymentSpec says where a chart comes from.
type DeploymentSpec struct {
	// Helm is the chart.
	// +optional
	Helm *ExtensionHelm `json:"helm,omitempty"`
}

// ExtensionHelm is a Helm chart.
type ExtensionHelm struct {
	// OCIRepository says where the chart is in an OCI registry.
	// +optional
	OCIRepository *gardencorev1.OCIRepository `json:"ociRepository,omitempty"`
}

// ExtensionStatus says how far the gardener-operator came. The gardener-operator writes it.
type ExtensionStatus struct {
	// ObservedGeneration is the metadata.generation that was acted on last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the conditions of the extension.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// ProviderStatus is what the extension publishes. Not written by the gardener-operator.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}
