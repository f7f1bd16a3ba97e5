package core

import (
	"cmp"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func secretBinding() *kind.Kind[corev1beta1.SecretBinding] {
	return &kind.Kind[corev1beta1.SecretBinding]{
		GroupVersionKind:    gvk("SecretBinding"),
		Plural:              "secretbindings",
		ShortNames:          []string{"sb"},
		Namespaced:          true,
		UnconditionalUpdate: true,

		Validate:       core.ValidateSecretBinding,
		ValidateUpdate: core.ValidateSecretBindingUpdate,
		Columns: []kind.Column[corev1beta1.SecretBinding]{
			{
				Name: "Secret", Description: "Namespace and name of the Secret.",
				Value: func(s *corev1beta1.SecretBinding) any { return s.SecretRef.Namespace + "/" + s.SecretRef.Name },
			},
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(s *corev1beta1.SecretBinding) any {
					return cmp.Or(ptr.Deref(s.Provider, corev1beta1.SecretBindingProvider{}).Type, kind.None)
				},
			},
		},
	}
}
