package clusteropenidconnectpreset_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/clusteropenidconnectpreset"
	"gardener.cloud/gardener/internal/apiserver/admission/openidconnectpreset"
)

// The preset of the project comes before that of operators; among those of the same kind, the weight decides.
func TestAdmit(t *testing.T) {
	spec := func(issuer string, weight int32, selector map[string]string) settingsv1alpha1.OpenIDConnectPresetSpec {
		s := settingsv1alpha1.OpenIDConnectPresetSpec{Weight: weight, Server: settingsv1alpha1.KubeAPIServerOpenIDConnect{IssuerURL: issuer, ClientID: "client"}}
		if selector != nil {
			s.ShootSelector = &metav1.LabelSelector{MatchLabels: selector}
		}
		return s
	}
	own := func(name string, spec settingsv1alpha1.OpenIDConnectPresetSpec) *settingsv1alpha1.OpenIDConnectPreset {
		return &settingsv1alpha1.OpenIDConnectPreset{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: name}, Spec: spec}
	}
	operators := func(name string, project map[string]string, spec settingsv1alpha1.OpenIDConnectPresetSpec) *settingsv1alpha1.ClusterOpenIDConnectPreset {
		return &settingsv1alpha1.ClusterOpenIDConnectPreset{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: settingsv1alpha1.ClusterOpenIDConnectPresetSpec{
			OpenIDConnectPresetSpec: spec, ProjectSelector: &metav1.LabelSelector{MatchLabels: project},
		}}
	}
	reader := admissiontest.Reader(t,
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"tier": "dev"}}, Spec: corev1beta1.ProjectSpec{Namespace: new("garden-dev")}},
		own("light", spec("light", 1, map[string]string{"own": "yes"})), own("heavy", spec("heavy", 9, map[string]string{"own": "yes"})),
		own("as-heavy", spec("as-heavy", 9, map[string]string{"own": "yes"})),
		operators("dev", map[string]string{"tier": "dev"}, spec("operators", 1, nil)),
		operators("prod", map[string]string{"tier": "prod"}, spec("prod", 99, nil)),
	)
	for name, tc := range map[string]struct {
		labels  map[string]string
		version string
		server  *corev1beta1.KubeAPIServerConfig
		want    string
	}{
		"of the project":                {labels: map[string]string{"own": "yes"}, version: "1.31.1", want: "as-heavy"},
		"of operators":                  {version: "1.31.1", want: "operators"},
		"of its own":                    {version: "1.31.1", server: &corev1beta1.KubeAPIServerConfig{OIDCConfig: &corev1beta1.OIDCConfig{IssuerURL: new("mine")}}, want: "mine"},
		"structured":                    {version: "1.31.1", server: &corev1beta1.KubeAPIServerConfig{StructuredAuthentication: &corev1beta1.StructuredAuthentication{}}},
		"a version that cannot have it": {version: "1.32.0"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s", Labels: tc.labels}}
			shoot.Spec.Kubernetes.Version, shoot.Spec.Kubernetes.KubeAPIServer = tc.version, tc.server
			first, second := openidconnectpreset.New(), clusteropenidconnectpreset.New()
			first.GardenCache = reader
			second.GardenCache = reader
			for _, p := range []admission.MutationInterface{first, second} {
				if err := p.Admit(t.Context(), admissiontest.Request{Resource: "shoots", Object: shoot}.Attributes(), nil); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil && server.OIDCConfig != nil {
				got = *server.OIDCConfig.IssuerURL
			}
			if got != tc.want {
				t.Errorf("the issuer is %q, want %q", got, tc.want)
			}
		})
	}
}
