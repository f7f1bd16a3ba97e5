package core

import (
	"fmt"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func quota() *kind.Kind[corev1beta1.Quota] {
	return &kind.Kind[corev1beta1.Quota]{
		GroupVersionKind:    gvk("Quota"),
		Plural:              "quotas",
		ShortNames:          []string{"squota"},
		Namespaced:          true,
		UnconditionalUpdate: true,

		Validate:       core.ValidateQuota,
		ValidateUpdate: core.ValidateQuotaUpdate,
		Columns: []kind.Column[corev1beta1.Quota]{
			{
				Name: "Scope", Description: "Kind whose objects the quota is for.",
				Value: func(q *corev1beta1.Quota) any { return q.Spec.Scope.APIVersion + "." + q.Spec.Scope.Kind },
			},
			{
				Name: "Cluster Lifetime", Description: "How long clusters may exist.",
				Value: func(q *corev1beta1.Quota) any {
					if q.Spec.ClusterLifetimeDays == nil {
						return "<unspecified>"
					}
					return fmt.Sprintf("%d days", *q.Spec.ClusterLifetimeDays)
				},
			},
		},
	}
}
