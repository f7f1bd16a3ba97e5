package security

import (
	"strings"

	"k8s.io/apiserver/pkg/registry/rest"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/security"
)

func workloadIdentity(settings Settings) *kind.Kind[securityv1alpha1.WorkloadIdentity] {
	return &kind.Kind[securityv1alpha1.WorkloadIdentity]{
		GroupVersionKind: gvk("WorkloadIdentity"),
		Plural:           "workloadidentities",
		ShortNames:       []string{"wi"},
		Namespaced:       true,

		PrepareForCreate: func(w *securityv1alpha1.WorkloadIdentity) {
			w.Status.Sub = strings.Join([]string{"gardener.cloud", "workloadidentity", w.Namespace, w.Name, string(w.UID)}, ":")
		},
		PrepareForUpdate: func(w, old *securityv1alpha1.WorkloadIdentity) { w.Status = old.Status },
		Validate:         security.ValidateWorkloadIdentity,
		ValidateUpdate:   security.ValidateWorkloadIdentityUpdate,
		Subresources: func(*kind.Main[securityv1alpha1.WorkloadIdentity]) map[string]rest.Storage {
			return map[string]rest.Storage{"token": &token{settings}}
		},
		Columns: []kind.Column[securityv1alpha1.WorkloadIdentity]{
			{
				Name: "Sub", Description: "Subject of the tokens.",
				Value: func(w *securityv1alpha1.WorkloadIdentity) any { return w.Status.Sub },
			},
			{
				Name: "Type", Description: "Type of the target system.", Unformatted: true,
				Value: func(w *securityv1alpha1.WorkloadIdentity) any { return w.Spec.TargetSystem.Type },
			},
			{
				Name: "Audiences", Description: "Audiences of the tokens.", Wide: true,
				Value: func(w *securityv1alpha1.WorkloadIdentity) any { return strings.Join(w.Spec.Audiences, ",") },
			},
		},
	}
}
