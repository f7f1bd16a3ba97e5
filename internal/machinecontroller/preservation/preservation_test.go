package preservation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func in(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }

func TestPreservation(t *testing.T) {
	const (
		running, failed, terminating = machinev1alpha1.MachineRunning, machinev1alpha1.MachineFailed, machinev1alpha1.MachineTerminating
		timeout                      = 96 * time.Hour
	)
	type verdict struct {
		value           string
		expiry          *metav1.Time
		kept, candidate bool
	}
	for name, tc := range map[string]struct {
		phase     machinev1alpha1.MachinePhase
		own, node string // annotations
		expiry    *metav1.Time
		change    func(*machinev1alpha1.Machine)
		want      verdict
	}{
		"nobody wants it":                   {phase: running},
		"nobody wants it, and it fails":     {phase: failed, want: verdict{candidate: true}},
		"now":                               {phase: running, own: "now", want: verdict{value: "now", expiry: in(timeout)}},
		"now, and it fails":                 {phase: failed, own: "now", want: verdict{value: "now", expiry: in(timeout), kept: true}},
		"when failed, and it runs":          {phase: running, own: "when-failed", expiry: in(time.Hour), want: verdict{value: "when-failed"}},
		"when failed, and it fails":         {phase: failed, own: "when-failed", want: verdict{value: "when-failed", expiry: in(timeout), kept: true}},
		"automatically":                     {phase: failed, own: "auto-preserved", want: verdict{value: "auto-preserved", expiry: in(timeout), kept: true}},
		"automatically, and it runs again":  {phase: running, own: "auto-preserved", expiry: in(time.Hour), want: verdict{value: "auto-preserved"}},
		"never":                             {phase: failed, own: "false", want: verdict{value: "false"}},
		"not any more":                      {phase: failed, own: "false", expiry: in(time.Hour), want: verdict{value: "false"}},
		"the annotation was removed":        {phase: failed, expiry: in(time.Hour), want: verdict{kept: true}}, // until the expiry time is removed
		"an unknown value":                  {phase: failed, own: "maybe", want: verdict{candidate: true}},
		"the Node wins":                     {phase: failed, own: "now", node: "false", want: verdict{value: "false"}},
		"the time does not begin again":     {phase: failed, own: "now", expiry: in(time.Minute), want: verdict{value: "now", expiry: in(time.Minute), kept: true}},
		"the time is over":                  {phase: failed, own: "now", expiry: in(0), want: verdict{value: "now", expiry: in(0)}},
		"the time of a running one is over": {phase: running, own: "now", expiry: in(0), want: verdict{value: "now", expiry: in(0)}},
		"it is deleted": {phase: failed, own: "now", expiry: in(time.Hour), change: func(m *machinev1alpha1.Machine) {
			m.DeletionTimestamp = in(0)
		}, want: verdict{value: "now"}},
		"it is terminating":    {phase: terminating, own: "now", expiry: in(time.Hour), want: verdict{value: "now"}},
		"it was never created": {phase: failed, own: "now", change: func(m *machinev1alpha1.Machine) { m.Spec.ProviderID = "" }, want: verdict{value: "now"}},
		"it does not exist any more": {phase: failed, own: "now", expiry: in(time.Hour), change: func(m *machinev1alpha1.Machine) {
			m.Status.LastOperation = machinev1alpha1.LastOperation{State: machinev1alpha1.MachineStateFailed, ErrorCode: "NotFound"}
		}, want: verdict{value: "now"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			m.Spec.ProviderID = "fake:///m"
			m.Status.CurrentStatus = machinev1alpha1.CurrentStatus{Phase: tc.phase, PreserveExpiryTime: tc.expiry}
			if tc.own != "" {
				m.Annotations[machinev1alpha1.PreserveMachine] = tc.own
			}
			if tc.node != "" {
				m.Annotations[machinev1alpha1.LastAppliedNodePreserveValue] = tc.node
			}
			if tc.change != nil {
				tc.change(m)
			}
			got := verdict{Value(m), Expiry(m, now, timeout), Kept(m, now), Candidate(m)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
