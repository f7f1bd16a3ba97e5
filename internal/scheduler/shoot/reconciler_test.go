package shoot

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// The default domains of a seed may be in Secrets, which the scheduler does not read. A shoot whose domain such a seed does not offer is bound to
// another one.
func TestASeedThatDoesNotOfferTheDomainIsNotTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		field string
		want  []string
	}{
		"the domain":           {field: "spec.dns.domain", want: []string{"a", "b"}},
		"something else of it": {field: "spec.networking.pods", want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			shoot := testShoot()
			var tried []string
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot).WithStatusSubresource(shoot).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(
					ctx context.Context, c client.Client, subresource string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
				) error {
					if subresource != "binding" {
						return c.SubResource(subresource).Patch(ctx, obj, patch, opts...)
					}
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					bound := &corev1beta1.Shoot{}
					if err := json.Unmarshal(data, bound); err != nil {
						return err
					}
					tried = append(tried, *bound.Spec.SeedName)
					if *bound.Spec.SeedName == "b" {
						return nil
					}
					return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), obj.GetName(), field.ErrorList{
						{Type: field.ErrorTypeInvalid, Field: tc.field, Detail: "not here"},
					})
				},
			}).Build()
			metrics, err := newMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			r := &reconciler{
				gardenCache: c, index: testIndex(schedulerconfigv1alpha1.SameRegion, testSeed("a"), testSeed("b")), clock: clock.RealClock{},
				recorder: events.NewFakeRecorder(10), metrics: metrics,
				backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tried); diff != "" {
				t.Errorf("seeds that were tried (-want +got):\n%s", diff)
			}
		})
	}
}
