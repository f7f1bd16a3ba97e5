package core

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func exposureClass() *kind.Kind[corev1beta1.ExposureClass] {
	return &kind.Kind[corev1beta1.ExposureClass]{
		GroupVersionKind: gvk("ExposureClass"),
		Plural:           "exposureclasses",
		ShortNames:       []string{"expclass", "expcls"},

		Validate:       core.ValidateExposureClass,
		ValidateUpdate: core.ValidateExposureClassUpdate,
		Columns: []kind.Column[corev1beta1.ExposureClass]{
			{
				Name: "Handler", Description: "Handler that exposes kube-apiservers.",
				Value: func(e *corev1beta1.ExposureClass) any { return e.Handler },
			},
		},
	}
}
