package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Condition returns the condition of a type, or nil.
func Condition(conditions []corev1beta1.Condition, typ corev1beta1.ConditionType) *corev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == typ {
			return &conditions[i]
		}
	}
	return nil
}

// ConditionsTrue returns an error with the first condition that is not True, or nil if all are.
func ConditionsTrue(conditions []corev1beta1.Condition) error {
	for _, condition := range conditions {
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("its condition %s is %s: %s", condition.Type, condition.Status, oneLine(condition.Message))
		}
	}
	return nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// MaxMessage is the length of messages in the status of an object, in bytes. Many are about objects in shoots, of which users write names and
// messages, and an object with a status that is too large cannot be written at all.
const MaxMessage = 8 << 10

// Shorten returns a text, or its begin and how much is missing if it is longer than a number of bytes.
func Shorten(text string, maximum int) string {
	const room = 32 // for the number
	if len(text) <= maximum {
		return text
	}
	begin := strings.ToValidUTF8(text[:max(0, maximum-room)], "")
	return fmt.Sprintf("%s... (%d more bytes)", begin, len(text)-len(begin))
}

// SetCondition returns the conditions with one of them set, and whether that changes anything. Its message is shortened. The timestamps of want are ignored: now is
// the lastUpdateTime if anything differs, and the lastTransitionTime if the status differs. The given conditions are not changed.
func SetCondition(conditions []corev1beta1.Condition, want corev1beta1.Condition, now time.Time) ([]corev1beta1.Condition, bool) {
	want.Message = Shorten(want.Message, MaxMessage)
	want.LastUpdateTime, want.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	before := Condition(conditions, want.Type)
	if before == nil {
		return append(slices.Clone(conditions), want), true
	}
	if before.Status == want.Status {
		want.LastTransitionTime = before.LastTransitionTime
		if before.Reason == want.Reason && before.Message == want.Message && apiequality.Semantic.DeepEqual(before.Codes, want.Codes) {
			return conditions, false
		}
	}
	after := slices.Clone(conditions)
	for i := range after {
		if after[i].Type == want.Type {
			after[i] = want
		}
	}
	return after, true
}

// Soften turns a condition that would be False to Progressing, if it was True not longer ago than the threshold. It returns when to check
// again; zero means that only a change can change the condition.
func Soften(before, desired *corev1beta1.Condition, threshold time.Duration, now time.Time) time.Duration {
	if desired.Status != corev1beta1.ConditionFalse || threshold == 0 || before == nil {
		return 0
	}
	switch before.Status {
	case corev1beta1.ConditionTrue:
		desired.Status = corev1beta1.ConditionProgressing
		return threshold
	case corev1beta1.ConditionProgressing:
		if left := before.LastTransitionTime.Add(threshold).Sub(now); left > 0 {
			desired.Status = corev1beta1.ConditionProgressing
			return left
		}
	}
	return 0
}
