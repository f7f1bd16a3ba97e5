package gardenlet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"

	"gardener.cloud/gardener/internal/stage/systemcomponents"
)

// Charts of extensions get gates that are not configured, too.
func TestGateValues(t *testing.T) {
	for name, tc := range map[string]struct {
		set, want map[string]bool
	}{
		"defaults":   {want: map[string]bool{"AllAlpha": false, "AllBeta": false, "IstioTLSTermination": false}},
		"configured": {set: map[string]bool{"IstioTLSTermination": true}, want: map[string]bool{"AllAlpha": false, "AllBeta": false, "IstioTLSTermination": true}},
		"all":        {set: map[string]bool{"AllAlpha": true}, want: map[string]bool{"AllAlpha": true, "AllBeta": false, "IstioTLSTermination": true}},
	} {
		t.Run(name, func(t *testing.T) {
			gates := featuregate.NewFeatureGate()
			if err := gates.Add(systemcomponents.Features()); err != nil {
				t.Fatal(err)
			}
			if err := gates.SetFromMap(tc.set); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, gateValues(gates)); diff != "" {
				t.Errorf("gateValues() (-want +got):\n%s", diff)
			}
		})
	}
}
