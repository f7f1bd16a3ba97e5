package core

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestForceDeletion(t *testing.T) {
	shoot := func(annotation string, deleted bool, codes ...corev1beta1.ErrorCode) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{}
		s.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": annotation}
		if deleted {
			s.DeletionTimestamp = new(metav1.Now())
		}
		s.Status.LastErrors = []corev1beta1.LastError{{Codes: codes}}
		return s
	}
	const stuck, quota = corev1beta1.ErrorCleanupClusterResources, corev1beta1.ErrorInfraQuotaExceeded
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		refused    bool
	}{
		"not confirmed":                 {shoot: shoot("", true)},
		"declined":                      {shoot: shoot("false", false)},
		"of a new shoot":                {shoot: shoot("true", false, stuck), refused: true},
		"of one that is not deleted":    {shoot: shoot("true", false, stuck), old: shoot("", false, stuck), refused: true},
		"without an error":              {shoot: shoot("true", true), old: shoot("", true), refused: true},
		"with an error of its own":      {shoot: shoot("true", true, quota), old: shoot("", true, quota), refused: true},
		"with an error that allows":     {shoot: shoot("true", true, quota, stuck), old: shoot("", true, quota, stuck)},
		"in other words":                {shoot: shoot("True", true), old: shoot("", true), refused: true},
		"after its errors are resolved": {shoot: shoot("true", true), old: shoot("true", true, stuck)},
		"taken back":                    {shoot: shoot("", true, stuck), old: shoot("true", true, stuck), refused: true},
		"declined after a declension":   {shoot: shoot("", true), old: shoot("false", true)},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := forceDeletion(tc.shoot, tc.old, field.NewPath("metadata", "annotations")); (len(errs) > 0) != tc.refused {
				t.Errorf("forceDeletion() is %v", errs)
			}
		})
	}
}
