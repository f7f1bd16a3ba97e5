package gardenlet

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/test/behind"
	"gardener.cloud/gardener/test/builder"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	unapproved := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{seedmanagementv1alpha1.AnnotationCreatedByGardenlet: "true"}
	})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(unapproved).WithStatusSubresource(unapproved).Build()
	behind.Case[*seedmanagementv1alpha1.Gardenlet]{
		API: api, Object: unapproved,
		Status: func(g *seedmanagementv1alpha1.Gardenlet) any { return g.Status.Conditions[0].Status },
		Other:  func(g *seedmanagementv1alpha1.Gardenlet) { g.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, virtualCache: cache, virtualAPI: api}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(unapproved)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An error that only another spec fixes is retried until it is reported.
func TestUnreportedErrorIsRetried(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), seedmanagementv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	invalid := builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config.Raw = []byte(`[]`) })
	refuse := true
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(invalid).WithStatusSubresource(invalid).Build(), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, subResource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if refuse {
				return errors.New("refused")
			}
			return c.SubResource(subResource).Patch(ctx, object, patch, options...)
		},
	})
	r := &reconciler{
		Values:       Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
		virtualCache: api, virtualAPI: api, runtimeCache: api, runtimeAPI: api, runtimeConfig: &rest.Config{},
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(invalid)}
	if _, err := r.Reconcile(t.Context(), request); err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("the error is %v, which is not retried", err)
	}
	refuse = false
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("the error is %v, which is retried", err)
	}
}
