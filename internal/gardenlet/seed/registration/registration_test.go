package registration

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDesired(t *testing.T) {
	config := &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"color": "new"}, Annotations: map[string]string{"note": "new"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}},
	}}
	current := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"color": "old", "other": "kept"}, Finalizers: []string{"f"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local", Region: "old"}},
		Status:     corev1beta1.SeedStatus{ObservedGeneration: 3},
	}
	want := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"color": "new", "other": "kept", "gardener.cloud/role": "seed"},
			Annotations: map[string]string{"note": "new"}, Finalizers: []string{"f"},
		},
		Spec:   corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}},
		Status: corev1beta1.SeedStatus{ObservedGeneration: 3},
	}
	if diff := cmp.Diff(want, desired(current, config)); diff != "" {
		t.Errorf("desired() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, desired(want, config)); diff != "" {
		t.Errorf("desired() a second time (-want +got):\n%s", diff)
	}
}

// A gardenlet whose Seed must not get what is in the configuration serves its shoots as before, until an operator has done what is needed. One that
// cannot create its Seed has nothing to serve.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, scheme := t.Context(), runtime.NewScheme()
		if err := corev1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		forbidden, attempts := apierrors.NewForbidden(corev1beta1.Resource("seeds"), "a", errors.New("no seed has the domain")), 0
		calls := interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
				if attempts++; attempts < 3 {
					return forbidden
				}
				return c.Patch(ctx, obj, patch, options...)
			},
		}
		garden := func(seeds ...client.Object) client.Client {
			return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(calls).WithObjects(seeds...).Build()
		}
		config := &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "new"}},
		}}
		if err := Register(ctx, garden(), config); !apierrors.IsForbidden(err) || errors.Is(err, ErrRefused) {
			t.Errorf("creating the Seed: %v", err)
		}
		api := garden(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		err := Register(ctx, api, config)
		if !apierrors.IsForbidden(err) || !errors.Is(err, ErrRefused) {
			t.Fatalf("updating the Seed: %v", err)
		}
		start := time.Now()
		Retry(ctx, api, config, err, clock.RealClock{})
		seed := &corev1beta1.Seed{}
		if err := api.Get(ctx, client.ObjectKey{Name: "a"}, seed); err != nil || seed.Spec.Provider.Type != "new" || attempts != 3 || time.Since(start) != 2*retryAfter {
			t.Errorf("after %v and %d attempts the Seed has the provider %q: %v", time.Since(start), attempts, seed.Spec.Provider.Type, err)
		}
		ended, end := context.WithCancel(ctx)
		end()
		Retry(ended, api, config, err, clock.RealClock{}) // returns
	})
}
