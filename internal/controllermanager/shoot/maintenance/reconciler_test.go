package maintenance

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A maintenance is done once per window, however often the Shoot is reconciled, and again in the next one, even if all of it is rejected.
func TestReconcileOncePerWindow(t *testing.T) {
	for name, reject := range map[string]bool{"accepted": false, "rejected": true} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "a", UID: "u"},
				Spec: corev1beta1.ShootSpec{
					CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1"},
					Maintenance: &corev1beta1.Maintenance{
						AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true},
						TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"},
					},
				},
			}
			profile := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
			profile.Spec.Kubernetes.Versions = []corev1beta1.ExpirableVersion{version("1.36.1"), version("1.36.2")}
			scheme := runtime.NewScheme()
			if err := corev1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, profile).WithStatusSubresource(shoot).
				WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if reject {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "shoots"}, obj.GetName(), errors.New("by a test"))
					}
					return c.Patch(ctx, obj, patch, opts...)
				}}).Build()
			clock := clocktesting.NewFakeClock(now) // half past one
			r := &reconciler{gardenCache: garden, recorder: events.NewFakeRecorder(10), clock: clock, started: now}
			run := func() (*corev1beta1.LastMaintenance, time.Duration) {
				t.Helper()
				if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
					t.Fatal(err)
				}
				result, err := r.Reconcile(t.Context(), shoot.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				if err := garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
					t.Fatal(err)
				}
				return shoot.Status.LastMaintenance, result.RequeueAfter
			}
			last, wait := run()
			if opens := 20*time.Hour + 30*time.Minute; last != nil || wait < opens || wait > opens+time.Hour {
				t.Fatalf("before the window, the last maintenance is %v, the next reconciliation in %s", last, wait)
			}
			for range 2 {
				clock.Step(wait)
				at := clock.Now().Truncate(time.Second)
				if last, wait = run(); last == nil || !last.TriggeredTime.Time.Equal(at) || (last.State == corev1beta1.LastOperationStateFailed) != reject {
					t.Fatalf("at %s, the last maintenance is %v", at, last)
				}
				clock.Step(time.Minute)
				if again, rest := run(); !again.TriggeredTime.Time.Equal(at) || rest != wait-time.Minute {
					t.Errorf("reconciled once more, the last maintenance is %v, the next reconciliation in %s, want %s", again, rest, wait-time.Minute)
				}
				wait -= time.Minute
			}
			want := "1.36.2"
			if reject {
				want = "1.36.1"
			}
			if got := shoot.Spec.Kubernetes.Version; got != want {
				t.Errorf("Kubernetes is %s, want %s", got, want)
			}
		})
	}
}
