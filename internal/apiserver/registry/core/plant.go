package core

import (
	"cmp"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func plant() *kind.Kind[corev1beta1.Plant] {
	return &kind.Kind[corev1beta1.Plant]{
		GroupVersionKind: gvk("Plant"),
		Plural:           "plants",
		ShortNames:       []string{"pl"},
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		Validate:             core.ValidatePlant,
		ValidateUpdate:       core.ValidatePlantUpdate,
		ValidateStatusUpdate: core.ValidatePlantStatusUpdate,
		Conditions:           func(p *corev1beta1.Plant) []corev1beta1.Condition { return p.Status.Conditions },
		Columns: []kind.Column[corev1beta1.Plant]{
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(p *corev1beta1.Plant) any { return cmp.Or(clusterInfo(p).Cloud.Type, kind.Unknown) },
			},
			{
				Name: "Region", Description: "Region of the infrastructure.",
				Value: func(p *corev1beta1.Plant) any { return cmp.Or(clusterInfo(p).Cloud.Region, kind.Unknown) },
			},
			{
				Name: "K8S Version", Description: "Kubernetes version.",
				Value: func(p *corev1beta1.Plant) any { return cmp.Or(clusterInfo(p).Kubernetes.Version, kind.Unknown) },
			},
			{Name: "APIServer", Description: "Whether the kube-apiserver of the cluster is available.", Condition: corev1beta1.ShootAPIServerAvailable},
			{Name: "Nodes", Description: "Whether all nodes are ready.", Condition: corev1beta1.ShootEveryNodeReady},
		},
	}
}

func clusterInfo(p *corev1beta1.Plant) corev1beta1.ClusterInfo {
	return ptr.Deref(p.Status.ClusterInfo, corev1beta1.ClusterInfo{})
}
