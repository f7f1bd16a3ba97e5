package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacedCloudProfile extends a CloudProfile for the shoots of one project: more versions, types or images,
// longer expiration dates.
type NamespacedCloudProfile struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is what differs from the parent.
	// +optional
	Spec NamespacedCloudProfileSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is the result.
	// +optional
	Status NamespacedCloudProfileStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespacedCloudProfileList is a list of NamespacedCloudProfile objects.
type NamespacedCloudProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []NamespacedCloudProfile `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// NamespacedCloudProfileSpec is what differs from the parent profile.
type NamespacedCloudProfileSpec struct {
	// CABundle is a CA bundle in PEM form, added to that of the parent.
	// +optional
	CABundle *string `json:"caBundle,omitempty" protobuf:"bytes,1,opt,name=caBundle"`
	// Kubernetes overrides expiration dates of Kubernetes versions of the parent.
	// +optional
	Kubernetes *KubernetesSettings `json:"kubernetes,omitempty" protobuf:"bytes,2,opt,name=kubernetes"`
	// MachineImages are further images and versions, or other expiration dates for those of the parent.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	MachineImages []MachineImage `json:"machineImages,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=machineImages"`
	// MachineTypes are further machine types.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	MachineTypes []MachineType `json:"machineTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=machineTypes"`
	// VolumeTypes are further volume types.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	VolumeTypes []VolumeType `json:"volumeTypes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,6,rep,name=volumeTypes"`
	// Parent is the CloudProfile that is extended. Its name cannot be changed.
	Parent CloudProfileReference `json:"parent" protobuf:"bytes,7,opt,name=parent"`
	// ProviderConfig is merged with that of the parent by the provider extension.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,8,opt,name=providerConfig"`
	// Limits override those of the parent.
	// +optional
	Limits *Limits `json:"limits,omitempty" protobuf:"bytes,9,opt,name=limits"`
}

// NamespacedCloudProfileStatus is the result of extending the parent profile.
type NamespacedCloudProfileStatus struct {
	// CloudProfileSpec is the merged offer that counts for shoots. Written by the gardener-controller-manager.
	// +optional
	CloudProfileSpec *CloudProfileSpec `json:"cloudProfileSpec,omitempty" protobuf:"bytes,1,opt,name=cloudProfileSpec"`
	// ObservedGeneration is the generation of the spec that was merged last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
}
