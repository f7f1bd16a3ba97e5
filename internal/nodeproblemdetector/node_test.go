package nodeproblemdetector

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlan(t *testing.T) {
	now := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	before := now.Add(-time.Hour)
	condition := func(status corev1.ConditionStatus, reason string, transition, beat time.Time) corev1.NodeCondition {
		c := corev1.NodeCondition{Type: kernelDeadlock, Status: status, Reason: reason, Message: "message"}
		if !beat.IsZero() {
			c.LastTransitionTime, c.LastHeartbeatTime = metav1.NewTime(transition), metav1.NewTime(beat)
		}
		return c
	}
	const good, bad = corev1.ConditionFalse, corev1.ConditionTrue
	for name, tc := range map[string]struct {
		written, desired []corev1.NodeCondition
		changed          bool
		patch            string
	}{
		"the first time": {
			desired: []corev1.NodeCondition{condition(good, "R", now, time.Time{})}, changed: true,
			patch: `[{"type":"KernelDeadlock","status":"False","lastHeartbeatTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T01:00:00Z","reason":"R","message":"message"}]`,
		},
		"only the time of the heartbeat": {
			written: []corev1.NodeCondition{condition(good, "R", before, before)}, desired: []corev1.NodeCondition{condition(good, "R", now, time.Time{})},
			patch: `[{"type":"KernelDeadlock","status":"False","lastHeartbeatTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"message"}]`,
		},
		"another reason is no transition": {
			written: []corev1.NodeCondition{condition(bad, "Q", before, before)}, desired: []corev1.NodeCondition{condition(bad, "R", now, time.Time{})}, changed: true,
			patch: `[{"type":"KernelDeadlock","status":"True","lastHeartbeatTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"message"}]`,
		},
		"a transition": {
			written: []corev1.NodeCondition{condition(good, "R", before, before)}, desired: []corev1.NodeCondition{condition(bad, "R", now, time.Time{})}, changed: true,
			patch: `[{"type":"KernelDeadlock","status":"True","lastHeartbeatTime":"2026-01-01T01:00:00Z","lastTransitionTime":"2026-01-01T01:00:00Z","reason":"R","message":"message"}]`,
		},
		"a condition whose source cannot be read any more": {
			written: []corev1.NodeCondition{condition(bad, "R", before, before)}, changed: true, patch: `[{"$patch":"delete","type":"KernelDeadlock"}]`,
		},
		"nothing at all": {patch: `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			written := map[corev1.NodeConditionType]corev1.NodeCondition{}
			for _, c := range tc.written {
				written[c.Type] = c
			}
			next, patch, changed := plan(written, tc.desired, now)
			body, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if changed != tc.changed || len(next) != len(tc.desired) {
				t.Errorf("plan() = %v, changed: %v, want %v", next, changed, tc.changed)
			}
			if diff := cmp.Diff(tc.patch, string(body)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
