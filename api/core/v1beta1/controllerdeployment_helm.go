package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// HelmControllerDeployment is the provider configuration of a ControllerDeployment of type "helm": a chart, inline
// or from an OCI registry, and its values.
type HelmControllerDeployment struct {
	// Chart is a gzipped tar archive of the chart (base64 in JSON). Excludes ociRepository.
	// +optional
	Chart []byte `json:"chart,omitempty" protobuf:"bytes,1,opt,name=chart"`
	// Values are the chart's values. The gardenlet adds its own under "gardener".
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty" protobuf:"bytes,2,opt,name=values"`
	// OCIRepository is where to pull the chart from. Excludes chart.
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
