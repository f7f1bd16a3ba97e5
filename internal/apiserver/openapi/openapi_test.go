package openapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// The dashboard takes the schemas of Shoots and Seeds for its editor by the names that the original gives them, and has none if they have another name.
func TestNamesAreThoseThatClientsLookFor(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{corev1beta1.Shoot{}.OpenAPIModelName(), "com.github.gardener.gardener.pkg.apis.core.v1beta1.Shoot"},
		{corev1beta1.Seed{}.OpenAPIModelName(), "com.github.gardener.gardener.pkg.apis.core.v1beta1.Seed"},
		{authenticationv1alpha1.AdminKubeconfigRequest{}.OpenAPIModelName(), "com.github.gardener.gardener.pkg.apis.authentication.v1alpha1.AdminKubeconfigRequest"},
	} {
		if tc.got != tc.want {
			t.Errorf("definition %q, want %q", tc.got, tc.want)
		}
	}
	definitions := GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		if !strings.HasPrefix(name, "io.k8s.") && !strings.HasPrefix(name, "com.github.gardener.gardener.pkg.apis.") {
			t.Errorf("definition %q has neither a name of Kubernetes nor one of the original", name)
		}
	}
}
