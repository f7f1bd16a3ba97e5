package attack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/apiserverconfig"
	"gardener.cloud/gardener/internal/validation/core"
	kubeconfigvalidation "gardener.cloud/gardener/internal/validation/kubeconfig"
)

// A kube-apiserver connects to issuers and webhooks of the owner of its shoot. Their URLs must not be addresses of metadata services, or of
// Services in the seed.
func TestURLsOfUsersStayOutOfTheSeed(t *testing.T) {
	fields := func(errs field.ErrorList) []string {
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		return fields
	}
	authentication := func(url, more string) string {
		return fmt.Sprintf(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{
			"issuer":{"url":"%s","audiences":["a"]%s},"claimMappings":{"username":{"claim":"sub","prefix":""}}}]}`, url, more)
	}
	for _, tc := range []struct {
		host string
		bad  bool
	}{
		{"issuer.example.com", false},
		{"169.254.169.254", true},
		{"[fd00:ec2::254]", true},
		{"kube-apiserver.shoot--victim--one.svc", true},
		{"vpn-seed-server.shoot--victim--one", true},
		{"etcd-main-client", true},
		{"localhost:2379", true},
	} {
		url := "https://" + tc.host
		for name, check := range map[string]struct {
			got  field.ErrorList
			path string
		}{
			"OpenID Connect": {
				core.OIDCConfig(&corev1beta1.OIDCConfig{ClientID: new("a"), IssuerURL: &url}, field.NewPath("spec", "kubernetes", "kubeAPIServer", "oidcConfig")),
				"spec.kubernetes.kubeAPIServer.oidcConfig.issuerURL",
			},
			"structured authentication": {apiserverconfig.Authentication(authentication(url, ""), version.MustParseGeneric("1.35"), nil), "jwt[0].issuer.url"},
			"discovery": {
				apiserverconfig.Authentication(authentication("https://example.com", `,"discoveryURL":"`+url+`/x"`), version.MustParseGeneric("1.35"), nil),
				"jwt[0].issuer.discoveryURL",
			},
			"kubeconfig of a webhook": {
				kubeconfigvalidation.Validate(fmt.Appendf(nil, `{"clusters":[{"name":"a","cluster":{"server":"%s"}}]}`, url), nil), "clusters[0].cluster.server",
			},
		} {
			var want []string
			if tc.bad {
				want = []string{check.path}
			}
			if diff := cmp.Diff(want, fields(check.got)); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s%v", name, url, diff, check.got)
			}
		}
	}
	// The tunnel leads to the network of the shoot only.
	inShoot := authentication("https://dex.auth.svc", `,"egressSelectorType":"cluster"`)
	if errs := apiserverconfig.Authentication(inShoot, version.MustParseGeneric("1.35"), nil); len(errs) > 0 {
		t.Errorf("an issuer in the shoot: %v", errs)
	}
}
