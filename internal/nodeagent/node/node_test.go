package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for annotation, tc := range map[string]struct {
		units []string
		self  bool
	}{
		"":                              {},
		" , ":                           {},
		"kubelet":                       {units: []string{"kubelet.service"}},
		"a.timer, kubelet,a.timer":      {units: []string{"a.timer", "kubelet.service"}},
		"gardener-node-agent":           {self: true},
		"gardener-node-agent.service,b": {units: []string{"b.service"}, self: true},
	} {
		units, self := parse(annotation)
		if diff := cmp.Diff(tc.units, units); diff != "" || self != tc.self {
			t.Errorf("parse(%q): itself %v, units (-want +got):\n%s", annotation, self, diff)
		}
	}
}
