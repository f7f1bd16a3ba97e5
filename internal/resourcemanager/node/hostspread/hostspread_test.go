package hostspread

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile(t *testing.T) {
	meta := func(name, spread string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "a", Name: name, Annotations: map[string]string{"high-availability-config.resources.gardener.cloud/host-spread": spread}}
	}
	var patched []string
	var failure error
	c := fake.NewClientBuilder().WithObjects(
		&appsv1.Deployment{ObjectMeta: meta("spread", "true")}, &appsv1.Deployment{ObjectMeta: meta("other", "false")}, &appsv1.StatefulSet{ObjectMeta: meta("set", "true")},
	).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			patched = append(patched, object.GetName())
			return failure
		},
	}).Build()
	r := &reconciler{target: c, targetAPI: c}
	pass := func(what string, fails bool, want ...string) {
		t.Helper()
		patched = nil
		if _, err := r.Reconcile(t.Context(), reconcile.Request{}); (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, patched); diff != "" {
			t.Errorf("%s: patched workloads (-want +got):\n%s", what, diff)
		}
	}
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	create := func(name string) {
		t.Helper()
		if err := c.Create(t.Context(), node(name)); err != nil {
			t.Fatal(err)
		}
	}
	pass("after the start", false, "spread", "set")
	create("1")
	pass("the first node", false)
	create("2")
	failure = errors.New("the API server does not respond")
	pass("two nodes, but workloads cannot be patched", true, "spread", "set")
	failure = nil
	pass("again", false, "spread", "set")
	create("3")
	pass("a third node", false)
	for _, name := range []string{"1", "2"} {
		if err := c.Delete(t.Context(), node(name)); err != nil {
			t.Fatal(err)
		}
	}
	pass("one is left", false, "spread", "set")
}
