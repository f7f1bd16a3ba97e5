package care

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A status that names the namespace of another shoot leads to nothing of that: its credentials are not read, and a client for it is closed.
func TestNamespaceOfAnotherShoot(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "thief", UID: "thief"},
		Status:     corev1beta1.ShootStatus{SeedName: new("here"), TechnicalID: "shoot--dev--a"},
	}
	for name, tc := range map[string]struct {
		owner  string
		exists bool
		reads  bool
	}{
		"its own":           {owner: "thief", exists: true, reads: true},
		"of another shoot":  {owner: "victim", exists: true},
		"of no shoot":       {exists: true},
		"not there (again)": {reads: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder()
			if tc.exists {
				seed.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--a", Annotations: map[string]string{"shoot.gardener.cloud/uid": tc.owner}}})
			}
			read := false
			kept := &fakeShoot{}
			r := &reconciler{
				gardenCache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot).Build(),
				Values:      Values{SeedName: "here", SeedAPI: seed.Build()},
				seedCache: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
					List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
						read = true
						return context.Canceled // nothing else is about the test
					},
				}).Build(),
			}
			key := client.ObjectKeyFromObject(shoot)
			r.shoots.byShoot = map[client.ObjectKey]cachedClient{key: {client: kept}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil {
				t.Error("Reconcile() has no error")
			}
			if read != tc.reads || kept.closed == tc.reads {
				t.Errorf("the control plane was read: %t, want %t; the client for the shoot was closed: %t", read, tc.reads, kept.closed)
			}
		})
	}
}
