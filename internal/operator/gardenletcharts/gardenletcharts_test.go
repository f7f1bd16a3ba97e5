package gardenletcharts

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/wave"
)

// No gardenlet is newer than a component of the garden.
func TestReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		want   bool
	}{
		"reconciled":      {change: func(*operatorv1alpha1.Garden) {}, want: true},
		"another version": {change: func(g *operatorv1alpha1.Garden) { g.Status.Gardener.Version = "v1.150.0" }},
		"no version":      {change: func(g *operatorv1alpha1.Garden) { g.Status.Gardener = nil }},
		"changed":         {change: func(g *operatorv1alpha1.Garden) { g.Generation++ }},
		"begun": {change: func(g *operatorv1alpha1.Garden) {
			g.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
		}},
		"new":     {change: func(g *operatorv1alpha1.Garden) { g.Status.LastOperation = nil }},
		"deleted": {change: func(g *operatorv1alpha1.Garden) { g.DeletionTimestamp = new(metav1.Now()) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			g.Status.Gardener, g.Status.ObservedGeneration = &corev1beta1.Gardener{Version: "v1.151.0"}, 2
			g.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
			tc.change(g)
			if got := reconciled(g, "v1.151.0"); got != tc.want {
				t.Errorf("reconciled() = %v", got)
			}
		})
	}
}

// An event says once that a wave does not pass, when it should have.
func TestReport(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{clock: testingclock.NewFakePassiveClock(now), recorder: recorder}
	for _, tc := range []struct {
		step wave.Step
		want int
	}{
		{wave.Step{Since: now.Add(-time.Minute), Missing: map[string]error{"a": errors.New("not yet")}}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("not yet")}}, 1},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("still not")}}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("still not"), "b": errors.New("not")}}, 1},
		{wave.Step{Since: now.Add(-2 * time.Hour)}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("again")}}, 1},
	} {
		r.report(t.Context(), &operatorv1alpha1.Garden{}, tc.step)
		got := len(recorder.Events)
		for range got {
			<-recorder.Events
		}
		if got != tc.want {
			t.Errorf("%d events for %+v, want %d", got, tc.step, tc.want)
		}
	}
}
