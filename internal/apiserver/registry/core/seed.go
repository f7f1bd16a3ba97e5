package core

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

func seed() *kind.Kind[corev1beta1.Seed] {
	return &kind.Kind[corev1beta1.Seed]{
		GroupVersionKind:    gvk("Seed"),
		Plural:              "seeds",
		HasStatus:           true,
		HasGeneration:       true,
		UnconditionalUpdate: true,

		Canonicalize: func(s *corev1beta1.Seed) {
			metav1.SetMetaDataLabel(&s.ObjectMeta, constants.SeedProvider, s.Spec.Provider.Type)
			metav1.SetMetaDataLabel(&s.ObjectMeta, constants.SeedRegion, s.Spec.Provider.Region)
		},
		Validate:             core.ValidateSeed,
		ValidateUpdate:       core.ValidateSeedUpdate,
		ValidateStatusUpdate: core.ValidateSeedStatusUpdate,
		Operation: kind.FixedEffects[corev1beta1.Seed](map[string]kind.Effect{
			constants.GardenerOperationReconcile:               kind.Taken,
			constants.GardenerOperationRenewKubeconfig:         kind.Counted,
			constants.SeedOperationRenewGardenAccessSecrets:    kind.Counted,
			constants.SeedOperationRenewWorkloadIdentityTokens: kind.Counted,
		}),
		Columns: []kind.Column[corev1beta1.Seed]{
			{
				Name: "Status", Description: "Whether the seed is ready.",
				Value: func(s *corev1beta1.Seed) any { return seedStatus(s) },
			},
			{
				Name: "Last Operation", Description: "Type, state and progress of the last operation.",
				Value: func(s *corev1beta1.Seed) any { return kind.LastOperation(s.Status.LastOperation) },
			},
			{
				Name: "Provider", Description: "Type of the provider.",
				Value: func(s *corev1beta1.Seed) any { return s.Spec.Provider.Type },
			},
			{
				Name: "Region", Description: "Region of the infrastructure.",
				Value: func(s *corev1beta1.Seed) any { return s.Spec.Provider.Region },
			},
		},
		ColumnsAfterAge: []kind.Column[corev1beta1.Seed]{
			{
				Name: "Version", Description: "Version of the gardenlet.",
				Value: func(s *corev1beta1.Seed) any {
					return cmp.Or(ptr.Deref(s.Status.Gardener, corev1beta1.Gardener{}).Version, kind.Unknown)
				},
			},
			{
				Name: "K8S Version", Description: "Kubernetes version.",
				Value: func(s *corev1beta1.Seed) any { return cmp.Or(ptr.Deref(s.Status.KubernetesVersion, ""), kind.Unknown) },
			},
		},
	}
}

// seedStatus summarizes the conditions of a seed.
func seedStatus(seed *corev1beta1.Seed) string {
	status := "Ready"
	for _, conditionType := range []corev1beta1.ConditionType{
		corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady, corev1beta1.SeedSystemComponentsHealthy,
	} {
		if conditionType == corev1beta1.SeedBackupBucketsReady && seed.Spec.Backup == nil {
			continue
		}
		switch kind.ConditionStatus(seed.Status.Conditions, conditionType) {
		case string(corev1beta1.ConditionFalse):
			return "NotReady"
		case kind.Unknown, string(corev1beta1.ConditionUnknown):
			status = "Unknown"
		}
	}
	return status
}
