package core

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func internalSecret() *kind.Kind[corev1beta1.InternalSecret] {
	return &kind.Kind[corev1beta1.InternalSecret]{
		GroupVersionKind:    gvk("InternalSecret"),
		Plural:              "internalsecrets",
		ShortNames:          []string{"ins"},
		Namespaced:          true,
		UnconditionalUpdate: true,

		PrepareForCreate: mergeStringData,
		PrepareForUpdate: func(s, _ *corev1beta1.InternalSecret) { mergeStringData(s) },
		Validate:         core.ValidateInternalSecret,
		ValidateUpdate:   core.ValidateInternalSecretUpdate,
		Fields: map[string]func(*corev1beta1.InternalSecret) string{
			"type": func(i *corev1beta1.InternalSecret) string { return string(i.Type) },
		},
		Columns: []kind.Column[corev1beta1.InternalSecret]{
			{
				Name: "Type", Description: "Type of the data.", Unformatted: true,
				Value: func(i *corev1beta1.InternalSecret) any { return string(i.Type) },
			},
			{
				Name: "Data", Description: "Number of entries.", Unformatted: true,
				Value: func(i *corev1beta1.InternalSecret) any { return len(i.Data) },
			},
		},
		// As the table of Secrets has it.
		AgeAsString: true,
	}
}

// mergeStringData moves stringData to data.
func mergeStringData(secret *corev1beta1.InternalSecret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
