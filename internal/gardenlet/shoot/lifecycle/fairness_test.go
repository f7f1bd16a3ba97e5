package lifecycle

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// A member of a project has as many shoots as a gardenlet has workers, and each is deleted with an object that keeps its finalizer, or has nodes that delay what
// is written to them. Shoots of others still get a worker.
func TestProjectDoesNotTakeAllWorkers(t *testing.T) {
	const project, other = "garden-dev", "garden-other"
	for name, tc := range map[string]struct {
		namespace string
		workers   int
		running   int // in garden-dev
		deleted   bool
		wait      bool
	}{
		"one less than it may have":        {namespace: project, workers: 20, running: 14},
		"as many as it may have":           {namespace: project, workers: 20, running: 15, wait: true},
		"as many, and one is deleted":      {namespace: project, workers: 20, running: 15, deleted: true, wait: true},
		"as many, and one of another":      {namespace: other, workers: 20, running: 15},
		"as many, and one of the operator": {namespace: constants.GardenNamespace, workers: 20, running: 15},
		"one of two":                       {namespace: project, workers: 2, running: 1, wait: true},
		"three of five":                    {namespace: project, workers: 5, running: 3, wait: true},
		"one worker":                       {namespace: project, workers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := newLandscape(t), reconciled()
			f.shoot.Namespace, f.seed.Name = tc.namespace, "here"
			f.shoot.Generation++
			if tc.deleted {
				f.shoot.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			l.gardenCache = interceptor.NewClient(l.garden, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					switch o := object.(type) {
					case *corev1beta1.Shoot:
						f.shoot.DeepCopyInto(o)
					case *corev1beta1.Seed:
						f.seed.DeepCopyInto(o)
					default:
						return c.Get(ctx, key, object, opts...)
					}
					return nil
				},
			})
			l.Clock, l.Config = clocktesting.NewFakePassiveClock(noon), f.config
			l.Config.ConcurrentSyncs, l.Config.RetryDuration = &tc.workers, &metav1.Duration{Duration: time.Hour}
			for range tc.running {
				l.turns.Take(project, 0)
			}
			result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.shoot)})
			// An operation that begins fails: the project does not exist.
			if waits := err == nil && result == (reconcile.Result{RequeueAfter: retryTurn}); waits != tc.wait || !waits && err == nil {
				t.Errorf("Reconcile() = %+v, %v, want it to wait: %t", result, err, tc.wait)
			}
			if got := l.turns.Running(tc.namespace); tc.namespace == project && got != tc.running || tc.namespace != project && got != 0 {
				t.Errorf("%d operations count after it", got)
			}
		})
	}
}
