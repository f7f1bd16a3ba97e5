package core

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func project() *kind.Kind[corev1beta1.Project] {
	return &kind.Kind[corev1beta1.Project]{
		GroupVersionKind:    gvk("Project"),
		Plural:              "projects",
		HasStatus:           true,
		HasGeneration:       true,
		UnconditionalUpdate: true,

		Validate:             core.ValidateProject,
		ValidateUpdate:       core.ValidateProjectUpdate,
		ValidateStatusUpdate: core.ValidateProjectStatusUpdate,
		Fields: map[string]func(*corev1beta1.Project) string{
			"spec.namespace": func(p *corev1beta1.Project) string { return ptr.Deref(p.Spec.Namespace, "") },
		},
		IndexedFields: []string{"spec.namespace"},
		Columns: []kind.Column[corev1beta1.Project]{
			{
				Name: "Namespace", Description: "Namespace of the project.",
				Value: func(p *corev1beta1.Project) any { return cmp.Or(ptr.Deref(p.Spec.Namespace, ""), kind.Unknown) },
			},
			{
				Name: "Status", Description: "Phase of the project.",
				Value: func(p *corev1beta1.Project) any { return cmp.Or(string(p.Status.Phase), kind.Unknown) },
			},
			{
				Name: "Owner", Description: "Owner of the project.",
				Value: func(p *corev1beta1.Project) any { return subjectName(p.Spec.Owner) },
			},
			{
				Name: "Creator", Description: "User who created the project.",
				Value: func(p *corev1beta1.Project) any { return subjectName(p.Spec.CreatedBy) },
			},
		},
	}
}

func subjectName(subject *rbacv1.Subject) string {
	if subject == nil || subject.Name == "" {
		return kind.Unknown
	}
	return subject.Name
}
