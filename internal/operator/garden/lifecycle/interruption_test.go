package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/flow"
)

// A flow waits for minutes for what a changed spec fixes, such as the address of a bucket: it ends when the Garden changes, without an error in the status.
func TestChangedGardenEndsFlow(t *testing.T) {
	const waited = time.Second
	later := func(g *operatorv1alpha1.Garden) { g.Generation++ }
	for name, tc := range map[string]struct {
		// before is a change after the pass has read the Garden, and before its flow begins; during is one while it waits.
		before, during func(*operatorv1alpha1.Garden)
		// last is how long ago another flow was interrupted.
		last time.Duration
		want error
	}{
		"nothing changes":                                 {want: context.DeadlineExceeded},
		"its status changes":                              {during: func(g *operatorv1alpha1.Garden) { g.Status.ObservedGeneration = 9 }, want: context.DeadlineExceeded},
		"its spec changes":                                {during: later, want: errChanged},
		"its spec changed before":                         {before: later, want: errChanged},
		"its spec changes again":                          {during: later, last: interruptionPeriod, want: errChanged},
		"its spec changes all the time":                   {during: later, last: interruptionPeriod - time.Second, want: context.DeadlineExceeded},
		"its spec changes all the time, and is read late": {before: later, last: interruptionPeriod - time.Second, want: context.DeadlineExceeded},
		"it is deleted": {
			during: func(g *operatorv1alpha1.Garden) { later(g); g.DeletionTimestamp = &metav1.Time{Time: now} }, last: time.Second, want: errChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			garden := plainGarden()
			generation := garden.Generation
			if tc.before != nil {
				tc.before(garden)
			}
			status, c, _ := newReporter(t, garden)
			clock := clocktesting.NewFakePassiveClock(now)
			r := &reconciler{Values: Values{Clock: clock}, runtimeCache: c}
			if tc.last > 0 {
				r.running.last = now.Add(-tc.last)
			}
			f, err := flow.New("a flow", flow.Task{ID: "bucket", Title: "Waiting for a bucket", Run: func(ctx context.Context) error {
				if tc.during != nil {
					after := garden.DeepCopy()
					tc.during(after)
					if queued := r.changed().Update(event.UpdateEvent{ObjectOld: garden, ObjectNew: after}); queued != (after.Generation != garden.Generation) {
						t.Errorf("the change queues the Garden: %t", queued)
					}
				}
				ctx, cancel := context.WithTimeout(ctx, waited)
				defer cancel()
				<-ctx.Done()
				return ctx.Err()
			}})
			if err != nil {
				t.Fatal(err)
			}
			err = r.run(t.Context(), status, f, share{0, 100}, generation)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if !errors.Is(tc.want, errChanged) {
				return
			}
			if _, err := r.failed(t.Context(), status, err); err != nil {
				t.Error(err)
			}
			if last := stored(t, c).Status.LastOperation; last != nil && last.State == "Error" {
				t.Errorf("last operation %+v", last)
			}
		})
	}
}
