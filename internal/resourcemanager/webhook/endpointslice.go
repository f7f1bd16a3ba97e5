package webhook

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// hintZones sets the hint of each endpoint of an EndpointSlice to its zone, however many endpoints the zones have: clients are to use those in their
// own zone. An endpoint without a zone gets no hint, as no client is in its zone.
func hintZones(_ context.Context, request admission.Request) admission.Response {
	slice := &discoveryv1.EndpointSlice{}
	return change(request, slice, func() error {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if endpoint.Zone == nil || *endpoint.Zone == "" {
				continue
			}
			if endpoint.Hints == nil {
				endpoint.Hints = &discoveryv1.EndpointHints{}
			}
			endpoint.Hints.ForZones = []discoveryv1.ForZone{{Name: *endpoint.Zone}}
		}
		return nil
	})
}
