package lifecycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/errorcode"
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

func TestExternalDomain(t *testing.T) {
	const domain = "a.dev.b.example.com"
	offer := func(name, domain, priority string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "seed-s", Name: name, Labels: map[string]string{"gardener.cloud/role": "default-domain"},
				Annotations: map[string]string{
					"dns.gardener.cloud/domain": domain, "dns.gardener.cloud/provider": name, "dns.gardener.cloud/domain-default-priority": priority,
				},
			},
			Data: map[string][]byte{"of": []byte(name)},
		}
	}
	secret := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Data: map[string][]byte{"of": []byte(name)}}
	}
	ofSeed := func(name, domain string) corev1beta1.SeedDNSProviderConfig {
		return corev1beta1.SeedDNSProviderConfig{
			Type: name, Domain: domain, CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: name},
		}
	}
	for name, tc := range map[string]struct {
		seed []corev1beta1.SeedDNSProviderConfig
		want dns.Domain
		code corev1beta1.ErrorCode // of the error, if there is one
	}{
		"the longest of the landscape": {
			want: dns.Domain{Name: domain, Provider: "long", Credentials: usercredential.Credential{Kind: "Secret", Data: map[string][]byte{"of": []byte("long")}}},
		},
		"the longest of the seed": {
			seed: []corev1beta1.SeedDNSProviderConfig{ofSeed("x", "example.com"), ofSeed("y", "b.example.com"), ofSeed("z", "com")},
			want: dns.Domain{Name: domain, Provider: "y", Credentials: usercredential.Credential{Kind: "Secret", Data: map[string][]byte{"of": []byte("y")}}},
		},
		"none of a seed that has others": {
			seed: []corev1beta1.SeedDNSProviderConfig{ofSeed("x", "example.org")},
			code: corev1beta1.ErrorConfigurationProblem,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Seed.Name, o.Seed.Spec.DNS = "s", corev1beta1.SeedDNS{Defaults: tc.seed}
			o.Shoot.Spec.DNS = &corev1beta1.DNS{Domain: new(domain)}
			garden := fake.NewClientBuilder().WithObjects(
				offer("short", "example.com", "10"), offer("long", "b.example.com", "1"), offer("other", "example.net", "20"), secret("x"), secret("y"), secret("z"),
			).Build()
			_, external, err := observer{gardenAPI: garden}.domains(t.Context(), o)
			if tc.code != "" {
				if codes := errorcode.Of(err); !slices.Contains(codes, tc.code) {
					t.Errorf("error %v has codes %v, want %s", err, codes, tc.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, external); diff != "" {
				t.Errorf("external domain (-want +got):\n%s", diff)
			}
		})
	}
}
