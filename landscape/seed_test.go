package landscape

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestKubernetesVersions(t *testing.T) {
	got := kubernetesVersions([]string{"v1.35.4", "v1.36.10", "v1.36.3"})
	want := []corev1beta1.ExpirableVersion{{Version: "1.36.10"}, {Version: "1.36.3"}, {Version: "1.35.4"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

// gardener-apiserver admits shoots with a managed issuer if a Secret with this role exists, and gardenlets take the host from it.
func TestIssuerHost(t *testing.T) {
	secret := (&upRun{Landscape: &Landscape{Name: "mine"}}).issuerHost()
	if secret.Namespace != "garden" || secret.Labels["gardener.cloud/role"] != "shoot-service-account-issuer" {
		t.Errorf("the Secret is %s/%s with labels %v", secret.Namespace, secret.Name, secret.Labels)
	}
	if diff := cmp.Diff("discovery.ingress.mine.local.gardener.cloud", string(secret.Data["hostname"])); diff != "" {
		t.Errorf("hostname (-want +got):\n%s", diff)
	}
}
