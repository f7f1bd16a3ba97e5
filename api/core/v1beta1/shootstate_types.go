package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootState is what must survive when the control plane of a shoot moves to another seed or is lost: secrets,
// states of extensions and of machines. The gardenlet writes it.
type ShootState struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata: Name and namespace are those of the shoot.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec is the saved state.
	// +optional
	Spec ShootStateSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ShootStateList is a list of ShootState objects.
type ShootStateList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ShootState `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ShootStateSpec is the saved state of a shoot.
type ShootStateSpec struct {
	// Gardener is the state that Gardener itself needs, such as secrets.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	Gardener []GardenerResourceData `json:"gardener,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,1,rep,name=gardener"`
	// Extensions is the state that extensions reported.
	// +optional
	Extensions []ExtensionResourceState `json:"extensions,omitempty" protobuf:"bytes,2,rep,name=extensions"`
	// Resources are objects that extension states refer to.
	// +optional
	Resources []ResourceData `json:"resources,omitempty" protobuf:"bytes,3,rep,name=resources"`
}

// GardenerResourceData is one piece of state that Gardener itself needs.
type GardenerResourceData struct {
	// Name identifies the piece.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Type says what it is: "secret" or "machine-state".
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// Data is the state.
	Data runtime.RawExtension `json:"data" protobuf:"bytes,3,opt,name=data"`
	// Labels help to find the piece again.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,4,rep,name=labels"`
}

// ExtensionResourceState is the state of one extension resource.
type ExtensionResourceState struct {
	// Kind is the kind of the extension resource.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Name is the name of the extension resource.
	// +optional
	Name *string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`
	// Purpose is the purpose of the extension resource, for kinds that have one.
	// +optional
	Purpose *string `json:"purpose,omitempty" protobuf:"bytes,3,opt,name=purpose"`
	// State is what the extension reported in status.state.
	// +optional
	State *runtime.RawExtension `json:"state,omitempty" protobuf:"bytes,4,opt,name=state"`
	// Resources are the references that the extension reported in status.resources.
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" protobuf:"bytes,5,rep,name=resources"`
}

// ResourceData is a copy of an object that an extension state refers to.
type ResourceData struct {
	// CrossVersionObjectReference says which object it was.
	autoscalingv1.CrossVersionObjectReference `json:",inline" protobuf:"bytes,1,opt,name=ref"`
	// Data is the object.
	Data runtime.RawExtension `json:"data" protobuf:"bytes,2,opt,name=data"`
}
