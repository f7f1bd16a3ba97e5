package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestHintZones(t *testing.T) {
	endpoint := func(zone *string, hints ...string) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{"10.1.2.3"}, Zone: zone}
		for _, hint := range hints {
			if e.Hints == nil {
				e.Hints = &discoveryv1.EndpointHints{}
			}
			e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: hint})
		}
		return e
	}
	got := send(t, hintZones, "EndpointSlice", &discoveryv1.EndpointSlice{AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{
		endpoint(new("zone-a")), endpoint(new("zone-b"), "zone-a", "zone-c"), endpoint(nil), endpoint(new("")),
	}})
	want := []discoveryv1.Endpoint{
		endpoint(new("zone-a"), "zone-a"), endpoint(new("zone-b"), "zone-b"), endpoint(nil), endpoint(new("")),
	}
	if diff := cmp.Diff(want, got.Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}
