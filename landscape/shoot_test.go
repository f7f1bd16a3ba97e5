package landscape

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

func TestManagedSeedShoot(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := seedmanagementv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "managed"},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "s"}},
	}).Build()
	if got, err := managedSeedShoot(t.Context(), garden, "managed"); err != nil || got == nil || got.String() != "garden/s" {
		t.Errorf("managedSeedShoot() = %v, %v, want garden/s", got, err)
	}
	if got, err := managedSeedShoot(t.Context(), garden, "other"); err != nil || got != nil {
		t.Errorf("managedSeedShoot() of a seed without a ManagedSeed = %v, %v", got, err)
	}
}

func TestByAddress(t *testing.T) {
	for name, tc := range map[string]struct{ server, address, want, wantName string }{
		"without a port":  {"https://api.a.b.example.com", "172.30.0.128", "https://172.30.0.128:443", "api.a.b.example.com"},
		"with a port":     {"https://api.a.b.example.com:8443/x", "172.30.0.128", "https://172.30.0.128:8443/x", "api.a.b.example.com"},
		"to IPv6":         {"https://api.a.b.example.com", "fd00::1", "https://[fd00::1]:443", "api.a.b.example.com"},
		"not an URL":      {":", "fd00::1", "", ""},
		"from an address": {"https://10.0.0.1:443", "172.30.0.128", "https://172.30.0.128:443", "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clientcmdapi.Cluster{Server: tc.server}
			err := byAddress(cluster, tc.address)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("error is %v", err)
			}
			if err == nil && (cluster.Server != tc.want || cluster.TLSServerName != tc.wantName) {
				t.Errorf("server is %q for %q", cluster.Server, cluster.TLSServerName)
			}
		})
	}
}
