package maintenance

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// outcome is what a maintenance changes in a Shoot.
type outcome struct {
	plan
	// shoot is the Shoot with all changes.
	shoot *corev1beta1.Shoot
	// operations are those that are started besides the reconciliation.
	operations []string
	// rejected are messages about operations that cannot be started.
	rejected []string
}

// decide returns the outcome of a maintenance. Without a profile, versions stay.
func decide(shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfileSpec, tasks []string, now time.Time) outcome {
	out := outcome{shoot: shoot.DeepCopy()}
	if profile != nil {
		u := updater{spec: &out.shoot.Spec, profile: profile, now: now}
		u.run()
		out.plan = u.plan
	}
	out.operations, out.rejected = annotate(out.shoot, len(out.changes) > 0, tasks, now)
	return out
}

// lastMaintenance returns the outcome for the status.
func (o outcome) lastMaintenance(now time.Time) *corev1beta1.LastMaintenance {
	var done []string
	if len(o.changes) > 0 {
		done = append(done, "Updated "+o.updates())
	}
	if len(o.operations) > 0 {
		done = append(done, "Started "+strings.Join(o.operations, ", "))
	}
	if len(done) == 0 {
		done = append(done, "Nothing had to be updated or rotated")
	}
	last := &corev1beta1.LastMaintenance{
		Description: strings.Join(done, ". ") + ".", TriggeredTime: metav1.NewTime(now), State: corev1beta1.LastOperationStateSucceeded,
	}
	if failures := slices.Concat(o.failures, o.rejected); len(failures) > 0 {
		last.State, last.FailureReason = corev1beta1.LastOperationStateFailed, new(strings.Join(failures, "; "))
	}
	return last
}

// updates lists the changes for messages.
func (o outcome) updates() string {
	texts := make([]string, 0, len(o.changes))
	for _, c := range o.changes {
		texts = append(texts, c.text)
	}
	return strings.Join(texts, "; ")
}
