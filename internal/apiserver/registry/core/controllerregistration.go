package core

import (
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func controllerRegistration() *kind.Kind[corev1beta1.ControllerRegistration] {
	return &kind.Kind[corev1beta1.ControllerRegistration]{
		GroupVersionKind: gvk("ControllerRegistration"),
		Plural:           "controllerregistrations",
		ShortNames:       []string{"ctrlreg"},
		Categories:       all,
		HasGeneration:    true,

		Validate:       core.ValidateControllerRegistration,
		ValidateUpdate: core.ValidateControllerRegistrationUpdate,
		Columns: []kind.Column[corev1beta1.ControllerRegistration]{
			{
				Name: "Resources", Description: "Kinds and types that the extension reconciles.",
				Value: func(c *corev1beta1.ControllerRegistration) any {
					var resources []string
					for _, resource := range c.Spec.Resources {
						resources = append(resources, resource.Kind+"/"+resource.Type)
					}
					return strings.Join(resources, ", ")
				},
			},
		},
	}
}
