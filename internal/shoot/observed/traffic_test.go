package observed

import (
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestTrafficDistribution(t *testing.T) {
	zone, node := corev1beta1.FailureToleranceTypeZone, corev1beta1.FailureToleranceTypeNode
	for name, tc := range map[string]struct {
		disabled  bool
		tolerance corev1beta1.FailureToleranceType
		zones     []string
		version   string
		want      string
	}{
		"in the same zone":                {tolerance: zone, zones: []string{"a", "b", "c"}, version: "v1.34.2", want: "PreferSameZone"},
		"the older name":                  {tolerance: zone, zones: []string{"a", "b", "c"}, version: "v1.33.9", want: "PreferClose"},
		"the version is not reported yet": {tolerance: zone, zones: []string{"a", "b", "c"}, want: "PreferClose"},
		"the setting is off":              {disabled: true, tolerance: zone, zones: []string{"a", "b", "c"}, version: "v1.34.2"},
		"one zone":                        {tolerance: zone, zones: []string{"a"}, version: "v1.34.2"},
		"not spread over zones":           {tolerance: node, zones: []string{"a", "b", "c"}, version: "v1.34.2"},
		"not highly available":            {zones: []string{"a", "b", "c"}, version: "v1.34.2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{Shoot: &corev1beta1.Shoot{}, Seed: &corev1beta1.Seed{}}
			s.Seed.Spec.Provider.Zones = tc.zones
			s.Seed.Spec.Settings = &corev1beta1.SeedSettings{TopologyAwareRouting: &corev1beta1.SeedSettingTopologyAwareRouting{Enabled: !tc.disabled}}
			if tc.version != "" {
				s.Seed.Status.KubernetesVersion = &tc.version
			}
			if tc.tolerance != "" {
				s.Shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
					FailureTolerance: corev1beta1.FailureTolerance{Type: tc.tolerance},
				}}
			}
			if got := ptr.Deref(s.TrafficDistribution(), ""); got != tc.want {
				t.Errorf("TrafficDistribution() = %q, want %q", got, tc.want)
			}
		})
	}
	if got := (&State{Shoot: &corev1beta1.Shoot{}, Seed: &corev1beta1.Seed{}}).TrafficDistribution(); got != nil {
		t.Errorf("without settings it is %q", *got)
	}
}
