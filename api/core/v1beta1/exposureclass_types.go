package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExposureClass is a way to expose the API servers of shoots, for example in a private network only. Shoots refer
// to it by name.
type ExposureClass struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Handler is the name of the exposure class handler that the gardenlets of the fitting seeds are configured with.
	// A DNS label of at most 34 characters; cannot be changed.
	Handler string `json:"handler" protobuf:"bytes,2,opt,name=handler"`
	// Scheduling restricts the seeds for shoots of this class. Cannot be changed.
	// +optional
	Scheduling *ExposureClassScheduling `json:"scheduling,omitempty" protobuf:"bytes,3,opt,name=scheduling"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExposureClassList is a list of ExposureClass objects.
type ExposureClassList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []ExposureClass `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ExposureClassScheduling restricts the seeds for shoots of an exposure class.
type ExposureClassScheduling struct {
	// SeedSelector selects the seeds that support the class.
	// +optional
	SeedSelector *SeedSelector `json:"seedSelector,omitempty" protobuf:"bytes,1,opt,name=seedSelector"`
	// Tolerations are added to the tolerations of the shoots.
	// +patchMergeKey=key
	// +patchStrategy=merge
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,2,rep,name=tolerations"`
}
