package seedmanagement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
)

func managedSeedSet(options core.Options) *kind.Kind[seedmanagementv1alpha1.ManagedSeedSet] {
	return &kind.Kind[seedmanagementv1alpha1.ManagedSeedSet]{
		GroupVersionKind: gvk("ManagedSeedSet"),
		Plural:           "managedseedsets",
		ShortNames:       []string{"mss"},
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		Validate: func(m *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
			return seedmanagement.ValidateManagedSeedSet(m, options)
		},
		ValidateUpdate: func(m, old *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
			return seedmanagement.ValidateManagedSeedSetUpdate(m, old, options)
		},
		ValidateStatusUpdate: seedmanagement.ValidateManagedSeedSetStatusUpdate,
		Subresources: func(main *kind.Main[seedmanagementv1alpha1.ManagedSeedSet]) map[string]rest.Storage {
			return map[string]rest.Storage{"scale": &scale{main}}
		},
		Columns: []kind.Column[seedmanagementv1alpha1.ManagedSeedSet]{
			{
				Name: "Ready", Description: "Number of ready replicas and of desired ones.",
				Value: func(m *seedmanagementv1alpha1.ManagedSeedSet) any {
					return fmt.Sprintf("%d/%d", m.Status.ReadyReplicas, ptr.Deref(m.Spec.Replicas, 0))
				},
			},
			{
				Name: "Pending", Description: "Replica that is created, updated or deleted at present, with the reason.",
				Value: func(m *seedmanagementv1alpha1.ManagedSeedSet) any {
					if m.Status.PendingReplica == nil {
						return ""
					}
					return m.Status.PendingReplica.Name + ":" + string(m.Status.PendingReplica.Reason)
				},
			},
		},
	}
}
