package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
)

func TestManagedIssuer(t *testing.T) {
	host := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "seed-s", Name: "issuer", Labels: map[string]string{"gardener.cloud/role": "shoot-service-account-issuer"}},
		Data:       map[string][]byte{"hostname": []byte("keys.example.com")},
	}
	for name, tc := range map[string]struct {
		annotation string
		hasHost    bool
		want       string
		fails      bool
	}{
		"the kube-apiserver is the issuer": {hasHost: true},
		"managed":                          {annotation: "managed", hasHost: true, want: "https://keys.example.com/projects/dev/shoots/1/issuer"},
		"managed, without a host":          {annotation: "managed", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			garden := fake.NewClientBuilder()
			if tc.hasHost {
				garden = garden.WithObjects(host.DeepCopy())
			}
			o := observedtest.State()
			o.Seed.Name, o.Shoot.Annotations = "s", map[string]string{"authentication.gardener.cloud/issuer": tc.annotation}
			got, err := observer{gardenAPI: garden.Build()}.managedIssuer(t.Context(), o)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("managedIssuer() is %q, %v", got, err)
			}
		})
	}
}
