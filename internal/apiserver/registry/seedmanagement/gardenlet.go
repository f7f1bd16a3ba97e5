package seedmanagement

import (
	"cmp"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
)

func gardenlet() *kind.Kind[seedmanagementv1alpha1.Gardenlet] {
	return &kind.Kind[seedmanagementv1alpha1.Gardenlet]{
		GroupVersionKind: gvk("Gardenlet"),
		Plural:           "gardenlets",
		ShortNames:       []string{"gl", "glet"},
		Namespaced:       true,
		HasStatus:        true,
		StatusOnCreate:   true,
		HasGeneration:    true,

		Validate:             seedmanagement.ValidateGardenlet,
		ValidateUpdate:       seedmanagement.ValidateGardenletUpdate,
		ValidateStatusUpdate: seedmanagement.ValidateGardenletStatusUpdate,
		Operation: kind.FixedEffects[seedmanagementv1alpha1.Gardenlet](map[string]kind.Effect{
			constants.GardenerOperationReconcile:       kind.Taken,
			constants.GardenerOperationRenewKubeconfig: kind.Counted,
			constants.OperationForceRedeploy:           kind.Counted,
		}),
		Conditions: func(g *seedmanagementv1alpha1.Gardenlet) []corev1beta1.Condition { return g.Status.Conditions },
		Columns: []kind.Column[seedmanagementv1alpha1.Gardenlet]{
			{
				Name: "OCI Repository", Description: "Repository of the chart.",
				Value: func(g *seedmanagementv1alpha1.Gardenlet) any {
					repository := g.Spec.Deployment.Helm.OCIRepository
					return cmp.Or(ptr.Deref(repository.Ref, ""), ptr.Deref(repository.Repository, ""))
				},
			},
			{Name: "Reconciled", Description: "Whether the gardenlet was deployed with its configuration.", Condition: seedmanagementv1alpha1.GardenletReconciled},
		},
	}
}
