package seedmanagement

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
)

func managedSeed() *kind.Kind[seedmanagementv1alpha1.ManagedSeed] {
	return &kind.Kind[seedmanagementv1alpha1.ManagedSeed]{
		GroupVersionKind: gvk("ManagedSeed"),
		Plural:           "managedseeds",
		ShortNames:       []string{"ms"},
		Namespaced:       true,
		HasStatus:        true,
		HasGeneration:    true,

		Validate:             seedmanagement.ValidateManagedSeed,
		ValidateUpdate:       seedmanagement.ValidateManagedSeedUpdate,
		ValidateStatusUpdate: seedmanagement.ValidateManagedSeedStatusUpdate,
		Operation: kind.FixedEffects[seedmanagementv1alpha1.ManagedSeed](map[string]kind.Effect{
			constants.GardenerOperationReconcile:       kind.Taken,
			constants.GardenerOperationRenewKubeconfig: kind.Counted,
		}),
		Fields: map[string]func(*seedmanagementv1alpha1.ManagedSeed) string{
			"spec.shoot.name": shootName,
		},
		Columns: []kind.Column[seedmanagementv1alpha1.ManagedSeed]{
			{
				Name: "Status", Description: "Whether the seed is registered.",
				Value: func(m *seedmanagementv1alpha1.ManagedSeed) any {
					switch kind.ConditionStatus(m.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered) {
					case string(corev1beta1.ConditionTrue):
						return "Registered"
					case string(corev1beta1.ConditionFalse):
						return "NotRegistered"
					}
					return "Unknown"
				},
			},
			{
				Name: "Shoot", Description: "Shoot that is the seed.",
				Value: func(m *seedmanagementv1alpha1.ManagedSeed) any { return shootName(m) },
			},
		},
	}
}

func shootName(managedSeed *seedmanagementv1alpha1.ManagedSeed) string {
	if managedSeed.Spec.Shoot == nil {
		return ""
	}
	return managedSeed.Spec.Shoot.Name
}
