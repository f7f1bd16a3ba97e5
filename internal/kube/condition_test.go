package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestSetCondition(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before, after := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now)
	condition := func(typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason string, changed, updated metav1.Time) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: status, Reason: reason, LastTransitionTime: changed, LastUpdateTime: updated}
	}
	other := condition("Other", "True", "Fine", before, before)
	present := []corev1beta1.Condition{other, condition("Ready", "True", "Fine", before, before)}
	for name, tc := range map[string]struct {
		conditions []corev1beta1.Condition
		want       corev1beta1.Condition
		result     []corev1beta1.Condition
		changed    bool
	}{
		"the first one":    {want: condition("Ready", "True", "Fine", before, before), result: []corev1beta1.Condition{condition("Ready", "True", "Fine", after, after)}, changed: true},
		"the same":         {conditions: present, want: condition("Ready", "True", "Fine", after, after), result: present},
		"another reason":   {conditions: present, want: condition("Ready", "True", "Better", after, after), result: []corev1beta1.Condition{other, condition("Ready", "True", "Better", before, after)}, changed: true},
		"another status":   {conditions: present, want: condition("Ready", "False", "Bad", before, before), result: []corev1beta1.Condition{other, condition("Ready", "False", "Bad", after, after)}, changed: true},
		"one more of them": {conditions: present[:1], want: condition("Ready", "False", "Bad", before, before), result: []corev1beta1.Condition{other, condition("Ready", "False", "Bad", after, after)}, changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := SetCondition(tc.conditions, tc.want, now)
			if diff := cmp.Diff(tc.result, got); diff != "" || changed != tc.changed {
				t.Errorf("SetCondition() changed %t (-want +got):\n%s", changed, diff)
			}
			if present[1].Reason != "Fine" {
				t.Error("the given conditions are changed")
			}
		})
	}
}
