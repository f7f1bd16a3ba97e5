package core

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func shootState() *kind.Kind[corev1beta1.ShootState] {
	return &kind.Kind[corev1beta1.ShootState]{
		GroupVersionKind: gvk("ShootState"),
		Plural:           "shootstates",
		Categories:       all,
		Namespaced:       true,
		HasGeneration:    true,

		Validate:       core.ValidateShootState,
		ValidateUpdate: core.ValidateShootStateUpdate,
		Columns: []kind.Column[corev1beta1.ShootState]{
			{
				Name: "Gardener Data", Description: "Number of entries of Gardener itself.", Unformatted: true,
				Value: func(s *corev1beta1.ShootState) any { return len(s.Spec.Gardener) },
			},
			{
				Name: "Extension States", Description: "Number of states of extensions.", Unformatted: true,
				Value: func(s *corev1beta1.ShootState) any { return len(s.Spec.Extensions) },
			},
		},
	}
}
