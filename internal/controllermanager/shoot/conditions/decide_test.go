package conditions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestMerge(t *testing.T) {
	list := func(pairs ...string) (conditions []corev1beta1.Condition) {
		for i := 0; i < len(pairs); i += 2 {
			conditions = append(conditions, corev1beta1.Condition{Type: corev1beta1.ConditionType(pairs[i]), Message: pairs[i+1]})
		}
		return conditions
	}
	seed := func(pairs ...string) *corev1beta1.Seed {
		return &corev1beta1.Seed{Status: corev1beta1.SeedStatus{Conditions: list(pairs...)}}
	}
	for name, tc := range map[string]struct {
		shoot []corev1beta1.Condition
		seed  *corev1beta1.Seed
		want  []corev1beta1.Condition
	}{
		"a Shoot without a Seed is not changed": {
			shoot: list("EveryNodeReady", "ok"), want: list("EveryNodeReady", "ok"),
		},
		"the Seed's conditions come last": {
			shoot: list("EveryNodeReady", "ok"), seed: seed("GardenletReady", "ok"),
			want: list("EveryNodeReady", "ok", "GardenletReady", "ok"),
		},
		"an existing condition is updated in its place": {
			shoot: list("GardenletReady", "old", "EveryNodeReady", "ok"), seed: seed("ExtensionsReady", "new", "GardenletReady", "new"),
			want: list("GardenletReady", "new", "EveryNodeReady", "ok", "ExtensionsReady", "new"),
		},
		"a condition that the Seed does not have any more is removed": {
			shoot: list("ExtensionsReady", "old", "EveryNodeReady", "ok"), seed: seed("GardenletReady", "new"),
			want: list("EveryNodeReady", "ok", "GardenletReady", "new"),
		},
		"without a Seed, its conditions are removed": {
			shoot: list("EveryNodeReady", "ok", "GardenletReady", "old", "EmergencyStopShootReconciliations", "old"), want: list("EveryNodeReady", "ok"),
		},
		"an unknown type is copied too": {
			shoot: list(), seed: seed("Shiny", "new"), want: list("Shiny", "new"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merge(tc.shoot, tc.seed)); diff != "" {
				t.Errorf("merge() (-want +got):\n%s", diff)
			}
		})
	}
}
