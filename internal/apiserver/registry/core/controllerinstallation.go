package core

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func controllerInstallation() *kind.Kind[corev1beta1.ControllerInstallation] {
	return &kind.Kind[corev1beta1.ControllerInstallation]{
		GroupVersionKind: gvk("ControllerInstallation"),
		Plural:           "controllerinstallations",
		ShortNames:       []string{"ctrlinst"},
		Categories:       all,
		HasStatus:        true,
		HasGeneration:    true,

		Validate:       core.ValidateControllerInstallation,
		ValidateUpdate: core.ValidateControllerInstallationUpdate,
		Fields: map[string]func(*corev1beta1.ControllerInstallation) string{
			"spec.registrationRef.name": func(c *corev1beta1.ControllerInstallation) string { return c.Spec.RegistrationRef.Name },
			"spec.seedRef.name":         func(c *corev1beta1.ControllerInstallation) string { return nameOf(c.Spec.SeedRef) },
			"spec.shootRef.name":        func(c *corev1beta1.ControllerInstallation) string { return nameOf(c.Spec.ShootRef) },
			"spec.shootRef.namespace":   func(c *corev1beta1.ControllerInstallation) string { return namespaceOf(c.Spec.ShootRef) },
		},
		IndexedFields: []string{"spec.seedRef.name"},
		WatchedField:  "spec.seedRef.name",
		Conditions:    func(c *corev1beta1.ControllerInstallation) []corev1beta1.Condition { return c.Status.Conditions },
		Columns: []kind.Column[corev1beta1.ControllerInstallation]{
			{
				Name: "Registration", Description: "Registration of the extension.",
				Value: func(c *corev1beta1.ControllerInstallation) any { return c.Spec.RegistrationRef.Name },
			},
			{
				Name: "Cluster", Description: "Cluster that the extension is installed for.",
				Value: func(c *corev1beta1.ControllerInstallation) any {
					switch {
					case c.Spec.ShootRef != nil:
						return "Shoot/" + c.Spec.ShootRef.Namespace + "/" + c.Spec.ShootRef.Name
					case c.Spec.SeedRef != nil:
						return "Seed/" + c.Spec.SeedRef.Name
					}
					return kind.Unknown
				},
			},
			{Name: "Valid", Description: "Whether the extension can be installed.", Condition: corev1beta1.ControllerInstallationValid},
			{Name: "Installed", Description: "Whether everything is installed.", Condition: corev1beta1.ControllerInstallationInstalled},
			{Name: "Healthy", Description: "Whether what is installed is healthy.", Condition: corev1beta1.ControllerInstallationHealthy},
			{Name: "Progressing", Description: "Whether a rollout is under way.", Condition: corev1beta1.ControllerInstallationProgressing},
		},
	}
}
