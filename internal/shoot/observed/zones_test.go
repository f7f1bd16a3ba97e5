package observed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestControlPlaneZones(t *testing.T) {
	const (
		prefer  = corev1beta1.ZoneSelectionModePrefer
		enforce = corev1beta1.ZoneSelectionModeEnforce
	)
	for name, tc := range map[string]struct {
		existing string
		pinned   []string
		zonal    bool
		seed     []string
		workers  []string
		mode     corev1beta1.ZoneSelectionMode
		want     []string
		refused  string
	}{
		"one of the seed":               {seed: []string{"a", "b", "c"}, want: []string{"b"}},
		"three for zone tolerance":      {zonal: true, seed: []string{"a", "b", "c", "d"}, want: []string{"a", "b", "c"}},
		"what exists stays":             {existing: "c", seed: []string{"a", "b", "c"}, want: []string{"c"}},
		"more are added to what exists": {existing: "c", zonal: true, seed: []string{"a", "b", "c"}, want: []string{"c", "b", "a"}},
		"one of three is enough again, but volumes are in all": {
			existing: "c,b,a", seed: []string{"a", "b", "c"}, want: []string{"c", "b", "a"},
		},
		"the owner's one of three, but volumes are in all": {
			existing: "c,b,a", pinned: []string{"b"}, seed: []string{"a", "b", "c"}, want: []string{"c", "b", "a"},
		},
		"the owner's one and two more": {
			existing: "b", pinned: []string{"a", "b", "c"}, zonal: true, seed: []string{"a", "b", "c"}, want: []string{"b", "a", "c"},
		},
		"the region was removed from the name":              {existing: "3", seed: []string{"here-1", "here-2", "here-3"}, want: []string{"here-3"}},
		"more are added to one without the region":          {existing: "1", zonal: true, seed: []string{"here-1", "here-2", "here-3"}, want: []string{"here-1", "here-2", "here-3"}},
		"the region is no part of the names of the seed":    {existing: "1", seed: []string{"1", "here-1"}, want: []string{"1"}},
		"a zone that the seed does not have keeps its name": {existing: "4", seed: []string{"here-1", "here-2"}, want: []string{"4"}},
		"the seed has no zones":                             {want: nil},
		"the owner's":                                       {pinned: []string{"a"}, seed: []string{"a", "b", "c"}, workers: []string{"b"}, mode: enforce, want: []string{"a"}},
		"the owner's three":                                 {pinned: []string{"c", "a", "d"}, zonal: true, seed: []string{"a", "b", "c", "d"}, want: []string{"c", "a", "d"}},
		"volumes are in another than the owner's": {
			existing: "b", pinned: []string{"a"}, seed: []string{"a", "b"}, want: []string{"b", "a"},
		},
		"zones of workers do not count":     {seed: []string{"a", "b", "c"}, workers: []string{"c"}, want: []string{"b"}},
		"zones of workers are preferred":    {seed: []string{"a", "b", "c"}, workers: []string{"x", "c"}, mode: prefer, want: []string{"c"}},
		"the seed has no zone of workers":   {seed: []string{"a", "b", "c"}, workers: []string{"x"}, mode: prefer, want: []string{"b"}},
		"first zones of workers, then more": {zonal: true, seed: []string{"a", "b", "c"}, workers: []string{"a", "c"}, mode: prefer, want: []string{"c", "a", "b"}},
		"zones of workers are enforced":     {seed: []string{"a", "b", "c"}, workers: []string{"c"}, mode: enforce, want: []string{"c"}},
		"workers have no zones":             {seed: []string{"a", "b", "c"}, mode: enforce, want: []string{"b"}},
		"what exists stays even so":         {existing: "a", seed: []string{"a", "b", "c"}, workers: []string{"c"}, mode: enforce, want: []string{"a"}},
		"too few zones of workers": {
			zonal: true, seed: []string{"a", "b", "c"}, workers: []string{"a", "c"}, mode: enforce, want: []string{"c", "a"},
			refused: `spec.provider.workers[].zones: seed "s" has 2 of these zones, and the control plane needs 3 of them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace, shoot, seed := &corev1.Namespace{}, &corev1beta1.Shoot{}, &corev1beta1.Seed{}
			namespace.Annotations = map[string]string{"high-availability-config.resources.gardener.cloud/zones": tc.existing}
			shoot.UID, seed.Name, seed.Spec.Provider.Zones, seed.Spec.Provider.Region = "1", "s", tc.seed, "here"
			shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: tc.pinned}
			if tc.zonal {
				shoot.Spec.ControlPlane.HighAvailability = &corev1beta1.HighAvailability{
					FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone},
				}
			}
			for _, zone := range tc.workers {
				shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, corev1beta1.Worker{Zones: []string{zone}})
			}
			if tc.mode != "" {
				seed.Spec.Settings = &corev1beta1.SeedSettings{ZoneSelection: &corev1beta1.SeedSettingZoneSelection{Mode: tc.mode}}
			}
			got, err := ControlPlaneZones(namespace, shoot, seed)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ControlPlaneZones() (-want +got):\n%s", diff)
			}
			refused := ""
			if err != nil {
				refused = err.Error()
			}
			if refused != tc.refused || err != nil && !errorcode.NeedsUser(errorcode.Of(err)) {
				t.Errorf("ControlPlaneZones() = %v, want %s", err, tc.refused)
			}
		})
	}
}
