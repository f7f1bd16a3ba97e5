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

func TestSoften(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	before := func(status corev1beta1.ConditionStatus, since time.Duration) *corev1beta1.Condition {
		return &corev1beta1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	for name, tc := range map[string]struct {
		before    *corev1beta1.Condition
		want      corev1beta1.ConditionStatus
		threshold time.Duration
		status    corev1beta1.ConditionStatus
		left      time.Duration
	}{
		"no threshold":                      {before: before("True", time.Hour), want: "False", status: "False"},
		"was not reported":                  {want: "False", threshold: time.Minute, status: "False"},
		"was True":                          {before: before("True", time.Hour), want: "False", threshold: time.Minute, status: "Progressing", left: time.Minute},
		"is Progressing for a while":        {before: before("Progressing", 20*time.Second), want: "False", threshold: time.Minute, status: "Progressing", left: 40 * time.Second},
		"is Progressing for long enough":    {before: before("Progressing", time.Minute), want: "False", threshold: time.Minute, status: "False"},
		"is False already":                  {before: before("False", 0), want: "False", threshold: time.Minute, status: "False"},
		"True is not delayed":               {before: before("Progressing", 0), want: "True", threshold: time.Minute, status: "True"},
		"Unknown is not delayed":            {before: before("True", 0), want: "Unknown", threshold: time.Minute, status: "Unknown"},
		"was Unknown, False is not delayed": {before: before("Unknown", 0), want: "False", threshold: time.Minute, status: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			want := &corev1beta1.Condition{Status: tc.want}
			left := Soften(tc.before, want, tc.threshold, now)
			if want.Status != tc.status || left != tc.left {
				t.Errorf("Soften() made it %s for %s, want %s for %s", want.Status, left, tc.status, tc.left)
			}
		})
	}
}
