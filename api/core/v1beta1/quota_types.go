package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Quota limits what shoots may use up, either all shoots of a project or all shoots that use a credential.
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec are the limits.
	// +optional
	Spec QuotaSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QuotaList is a list of Quota objects.
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Quota `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// QuotaSpec are the limits of a quota.
type QuotaSpec struct {
	// ClusterLifetimeDays is how long a shoot may exist, in days. Afterwards it is deleted, unless its user extends
	// the time.
	// +optional
	ClusterLifetimeDays *int32 `json:"clusterLifetimeDays,omitempty" protobuf:"varint,1,opt,name=clusterLifetimeDays"`
	// Metrics are the limits: cpu, gpu, memory, storage.standard, storage.premium and loadbalancer, as quantities.
	Metrics corev1.ResourceList `json:"metrics" protobuf:"bytes,2,rep,name=metrics"`
	// Scope says what the limits are counted for: kind Project (core.gardener.cloud/v1beta1), kind Secret (v1) or
	// kind WorkloadIdentity. Cannot be changed.
	Scope corev1.ObjectReference `json:"scope" protobuf:"bytes,3,opt,name=scope"`
}
