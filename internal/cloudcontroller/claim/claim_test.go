package claim

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

const namespace = "shoot--dev--crazy"

func newReconciler(t *testing.T, services ...client.Object) (*reconciler, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := hostsv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seed, recorder := fake.NewClientBuilder().WithScheme(scheme).Build(), events.NewFakeRecorder(100)
	shoot := fake.NewClientBuilder().WithObjects(services...).WithStatusSubresource(&corev1.Service{}).Build()
	return &reconciler{seedAPI: seed, seedClient: seed, shootClient: shoot, recorder: recorder, namespace: namespace}, recorder
}

func service(name, address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: address},
	}
}

func (r *reconciler) run(t *testing.T, service client.Object) reconcile.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func claims(t *testing.T, c client.Client) []hostsv1alpha1.AddressClaim {
	t.Helper()
	all := &hostsv1alpha1.AddressClaimList{}
	if err := c.List(t.Context(), all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return all.Items
}

// The claims of all shoots of a seed are read together.
func TestManyServices(t *testing.T) {
	var services []client.Object
	for i := range maxClaims + 1 {
		services = append(services, service(fmt.Sprintf("web-%d", i), ""))
	}
	r, recorder := newReconciler(t, services...)
	for _, s := range services[:maxClaims] {
		if result := r.run(t, s); !result.IsZero() {
			t.Errorf("Service %s: %v", s.GetName(), result)
		}
	}
	if n := len(recorder.Events); n > 0 {
		t.Errorf("%d Events below the limit", n)
	}
	if result := r.run(t, services[maxClaims]); result.RequeueAfter != fullRetry || len(claims(t, r.seedClient)) != maxClaims {
		t.Errorf("beyond the limit: %v, %d claims", result, len(claims(t, r.seedClient)))
	}
	if n := len(recorder.Events); n != 1 {
		t.Errorf("%d Events beyond the limit", n)
	}
	if err := r.shootClient.Delete(t.Context(), services[0]); err != nil {
		t.Fatal(err)
	}
	r.run(t, services[0])
	r.run(t, services[maxClaims])
	if result := r.run(t, services[maxClaims]); !result.IsZero() || len(claims(t, r.seedClient)) != maxClaims {
		t.Errorf("after a deletion: %v, %d claims", result, len(claims(t, r.seedClient)))
	}
}

func TestLoadBalancerIP(t *testing.T) {
	for address, valid := range map[string]bool{
		"": true, "192.0.2.1": true, "2001:db8::1": true, "x": false, "fe80::1%eth0": false, strings.Repeat("1", 1<<20): false,
	} {
		s := service("web", address)
		r, recorder := newReconciler(t, s)
		r.run(t, s)
		if n, told := len(claims(t, r.seedClient)), len(recorder.Events); n == 1 != valid || told == 0 != valid {
			t.Errorf("loadBalancerIP %.20q has %d claims and %d Events", address, n, told)
		}
	}
	s := service("web", "192.0.2.1")
	r, _ := newReconciler(t, s)
	r.run(t, s)
	if err := r.shootClient.Patch(t.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"loadBalancerIP":"x"}}`))); err != nil {
		t.Fatal(err)
	}
	r.run(t, s)
	if left := claims(t, r.seedClient); len(left) > 0 {
		t.Errorf("claims are left: %v", left)
	}
}
