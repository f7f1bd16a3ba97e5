package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Plant registers a Kubernetes cluster that Gardener does not manage, so that it is monitored beside the shoots of
// its project.
type Plant struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Spec says how the cluster is reached.
	// +optional
	Spec PlantSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is what the gardener-controller-manager last saw of the cluster.
	// +optional
	Status PlantStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlantList is a list of Plant objects.
type PlantList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the objects.
	Items []Plant `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// PlantSpec says how the cluster is reached.
type PlantSpec struct {
	// SecretRef is a Secret in the same namespace with a kubeconfig for the cluster in the key "kubeconfig".
	SecretRef corev1.LocalObjectReference `json:"secretRef" protobuf:"bytes,1,opt,name=secretRef"`
	// Endpoints are addresses of the cluster that users want to find.
	// +optional
	Endpoints []Endpoint `json:"endpoints,omitempty" protobuf:"bytes,2,rep,name=endpoints"`
}

// Endpoint is an address of a cluster that users want to find.
type Endpoint struct {
	// Name is the name of the endpoint, unique in the list.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// URL is the address.
	URL string `json:"url" protobuf:"bytes,2,opt,name=url"`
	// Purpose says what the endpoint is for.
	Purpose string `json:"purpose" protobuf:"bytes,3,opt,name=purpose"`
}

// PlantStatus is what the gardener-controller-manager last saw of the cluster.
type PlantStatus struct {
	// Conditions are the observations about the cluster: APIServerAvailable and EveryNodeReady.
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// ObservedGeneration is the generation of the spec that the controller last worked on.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
	// ClusterInfo are facts about the cluster.
	// +optional
	ClusterInfo *ClusterInfo `json:"clusterInfo,omitempty" protobuf:"bytes,3,opt,name=clusterInfo"`
}

// ClusterInfo are facts about a cluster.
type ClusterInfo struct {
	// Cloud says on which infrastructure the cluster runs.
	Cloud CloudInfo `json:"cloud" protobuf:"bytes,1,opt,name=cloud"`
	// Kubernetes says which Kubernetes it runs.
	Kubernetes KubernetesInfo `json:"kubernetes" protobuf:"bytes,2,opt,name=kubernetes"`
}

// CloudInfo says on which infrastructure a cluster runs.
type CloudInfo struct {
	// Type is the type of the infrastructure, from the provider IDs of the nodes.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Region is the region of the infrastructure, from the labels of the nodes.
	Region string `json:"region" protobuf:"bytes,2,opt,name=region"`
}

// KubernetesInfo says which Kubernetes a cluster runs.
type KubernetesInfo struct {
	// Version is the version of its API server.
	Version string `json:"version" protobuf:"bytes,1,opt,name=version"`
}
