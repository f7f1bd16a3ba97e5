package v1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerDeployment says how an extension controller is installed in a seed.
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Helm installs the controller with a Helm chart.
	// +optional
	Helm *HelmControllerDeployment `json:"helm,omitempty" protobuf:"bytes,2,opt,name=helm"`
	// InjectGardenKubeconfig makes the gardenlet give the deployed pods a kubeconfig for the garden cluster. False is
	// the default.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty" protobuf:"varint,3,opt,name=injectGardenKubeconfig"`
	// Resources are objects in the "garden" namespace, Secrets and ConfigMaps, that the chart's values may refer to.
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=resources"`
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

// HelmControllerDeployment is a chart, inline or from an OCI registry, and its values.
type HelmControllerDeployment struct {
	// RawChart is a gzipped tar archive of the chart (base64 in JSON). Excludes ociRepository.
	// +optional
	RawChart []byte `json:"rawChart,omitempty" protobuf:"bytes,1,opt,name=rawChart"`
	// Values are the chart's values. The gardenlet adds its own under "gardener".
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty" protobuf:"bytes,2,opt,name=values"`
	// OCIRepository is where to pull the chart from. Excludes rawChart.
	// +optional
	OCIRepository *OCIRepository `json:"ociRepository,omitempty" protobuf:"bytes,3,opt,name=ociRepository"`
}

// OCIRepository is an artifact in an OCI registry. Either ref is set, or repository with tag or digest.
type OCIRepository struct {
	// Ref is the whole reference, such as "registry.example.com/charts/foo:1.0.0". Excludes repository, tag and
	// digest.
	// +optional
	Ref *string `json:"ref,omitempty" protobuf:"bytes,1,opt,name=ref"`
	// Repository is the reference without tag and digest.
	// +optional
	Repository *string `json:"repository,omitempty" protobuf:"bytes,2,opt,name=repository"`
	// Tag is the tag of the artifact. If a digest is given too, it wins.
	// +optional
	Tag *string `json:"tag,omitempty" protobuf:"bytes,3,opt,name=tag"`
	// Digest is the digest of the artifact, such as "sha256:...".
	// +optional
	Digest *string `json:"digest,omitempty" protobuf:"bytes,4,opt,name=digest"`
	// PullSecretRef is a Secret in the "garden" namespace with credentials for the registry, labelled
	// gardener.cloud/role=helm-pull-secret.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty" protobuf:"bytes,5,opt,name=pullSecretRef"`
	// CABundleSecretRef is a Secret in the "garden" namespace with the CA certificates of the registry in
	// "bundle.crt".
	// +optional
	CABundleSecretRef *corev1.LocalObjectReference `json:"caBundleSecretRef,omitempty" protobuf:"bytes,6,opt,name=caBundleSecretRef"`
}

// NamedResourceReference gives a name to an object in the "garden" namespace, so that configuration can refer to
// it by that name.
type NamedResourceReference struct {
	// Name is the name that configuration uses. It is unique in the list.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// ResourceRef points to the object.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef" protobuf:"bytes,2,opt,name=resourceRef"`
}
