// Package shootrestriction serves the webhook that restricts what clients of self-hosted shoots (gardenlets, extensions and gardenadm) may write.
// Requests of all others are admitted. Source: concepts.txt, gardener-admission-controller, "Scoped API Access".
package shootrestriction

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/restricted"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/restriction"
)

// New returns the webhook. The reader reads from the garden, the cache from an informer cache; the clock says whether client certificates have
// expired.
func New(reader, cache client.Reader, decoder admission.Decoder, c clock.PassiveClock) admission.Handler {
	return &restricted.Handler{
		Reader: reader, Cache: cache, Decoder: decoder, Clock: c,
		Client: func(u user.Info) bool { _, ok := requester.OfShoot(u); return ok },
		Decide: (*restriction.Values).Shoot,
	}
}
