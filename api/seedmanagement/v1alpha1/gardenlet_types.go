package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Gardenlet deploys a gardenlet into a cluster that is not a shoot, and keeps it up to date. The gardenlet itself
// carries it out.
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: The name is that of the Seed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the desired gardenlet.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardenlet last did about it.
	// +optional
	Status GardenletStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GardenletList is a list of Gardenlet objects.
type GardenletList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Gardenlet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// AnnotationCreatedByGardenlet marks Gardenlets that the gardenlet of their seed created, so that no operator has approved what is in them.
// The admission of the garden sets it, with the value "true". The gardener-operator does not deploy such a Gardenlet until an operator has removed
// the annotation.
const AnnotationCreatedByGardenlet = "seedmanagement.gardener.cloud/created-by-gardenlet"

// GardenletSpec is the desired gardenlet.
type GardenletSpec struct {
	// Deployment is the deployment of the gardenlet.
	Deployment GardenletSelfDeployment `json:"deployment" protobuf:"bytes,1,opt,name=deployment"`
	// Config is its GardenletConfiguration. Its seedConfig must be set.
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
	// KubeconfigSecretRef is a Secret in the same namespace with a kubeconfig for the cluster. The gardener-operator
	// uses it for the first deployment; without it, the gardenlet is deployed into the operator's own cluster.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty" protobuf:"bytes,3,opt,name=kubeconfigSecretRef"`
}

// GardenletSelfDeployment is the deployment of a gardenlet that updates itself.
type GardenletSelfDeployment struct {
	// GardenletDeployment is the deployment of the gardenlet.
	GardenletDeployment `json:",inline" protobuf:"bytes,1,opt,name=gardenletDeployment"`
	// Helm is the chart of the gardenlet.
	Helm GardenletHelm `json:"helm" protobuf:"bytes,2,opt,name=helm"`
	// ImageVectorOverwrite replaces images of components that the gardenlet deploys: an image vector as YAML.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty" protobuf:"bytes,3,opt,name=imageVectorOverwrite"`
	// ComponentImageVectorOverwrite replaces images of components that deploy images themselves, such as etcd-druid:
	// a component image vector as YAML.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty" protobuf:"bytes,4,opt,name=componentImageVectorOverwrite"`
}

// GardenletHelm is the chart of a gardenlet.
type GardenletHelm struct {
	// OCIRepository is where to pull the chart from.
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository" protobuf:"bytes,1,opt,name=ociRepository"`
}

// GardenletStatus is what the gardenlet last did.
type GardenletStatus struct {
	// Conditions are the observations about the gardenlet: GardenletReconciled.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []corev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// ObservedGeneration is the generation of the spec that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
}
