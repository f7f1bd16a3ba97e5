package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerDeployment says how an extension controller is installed in a seed. Version v1 of this kind says the
// same with typed fields and is preferred.
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Type is the installation method; "helm" is built in. Any other type is left to a foreign controller.
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// ProviderConfig is the configuration of the installation method. For type "helm" it is a
	// HelmControllerDeployment.
	ProviderConfig runtime.RawExtension `json:"providerConfig" protobuf:"bytes,3,opt,name=providerConfig"`
	// InjectGardenKubeconfig makes the gardenlet give the deployed pods a kubeconfig for the garden cluster. False is
	// the default.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty" protobuf:"varint,4,opt,name=injectGardenKubeconfig"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerDeploymentList is a list of ControllerDeployment objects.
type ControllerDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ControllerDeployment `json:"items" protobuf:"bytes,2,rep,name=items"`
}
