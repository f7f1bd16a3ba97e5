package settings_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/validation/settings"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestValidatePresets(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*settingsv1alpha1.OpenIDConnectPresetSpec)
		want   []string
	}{
		"a usual preset is valid": {change: func(*settingsv1alpha1.OpenIDConnectPresetSpec) {}},
		"no weight": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) { s.Weight = 0 },
			want:   []string{"FieldValueInvalid spec.weight"},
		},
		"too much weight": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) { s.Weight = 101 },
			want:   []string{"FieldValueInvalid spec.weight"},
		},
		"an issuer without TLS": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) { s.Server.IssuerURL = "http://issuer.example.com" },
			want:   []string{"FieldValueInvalid spec.server.issuerURL"},
		},
		"no server": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) {
				s.Server = settingsv1alpha1.KubeAPIServerOpenIDConnect{}
			},
			want: []string{"FieldValueRequired spec.server.clientID", "FieldValueRequired spec.server.issuerURL"},
		},
		"an algorithm twice": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) { s.Server.SigningAlgs = []string{"RS256", "RS256"} },
			want:   []string{"FieldValueDuplicate spec.server.signingAlgs[1]"},
		},
		"what the client has a field for": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) {
				s.Client = &settingsv1alpha1.OpenIDConnectClientAuthentication{ExtraConfig: map[string]string{"client-id": "x", "more": ""}}
			},
			want: []string{"FieldValueForbidden spec.client.extraConfig[client-id]", "FieldValueRequired spec.client.extraConfig[more]"},
		},
		"a selector that selects nothing": {
			change: func(s *settingsv1alpha1.OpenIDConnectPresetSpec) {
				s.ShootSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
			},
			want: []string{"FieldValueInvalid spec.shootSelector.matchExpressions[0].operator"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := settingsv1alpha1.OpenIDConnectPresetSpec{
				Weight: 50,
				Server: settingsv1alpha1.KubeAPIServerOpenIDConnect{ClientID: "kubernetes", IssuerURL: "https://issuer.example.com"},
			}
			tc.change(&spec)
			meta := metav1.ObjectMeta{Name: "preset"}
			cluster := &settingsv1alpha1.ClusterOpenIDConnectPreset{ObjectMeta: meta}
			cluster.Spec.OpenIDConnectPresetSpec = spec
			validationtest.Expect(t, settings.ValidateClusterOpenIDConnectPreset(cluster), tc.want...)
			meta.Namespace = "garden-dev"
			validationtest.Expect(t, settings.ValidateOpenIDConnectPreset(&settingsv1alpha1.OpenIDConnectPreset{ObjectMeta: meta, Spec: spec}), tc.want...)
		})
	}
}
