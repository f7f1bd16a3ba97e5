// Package seedrestriction lets clients of a seed write only what is of their seed: gardenlets, and extensions with access to the garden.
package seedrestriction

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/apiserver/admission/restricted"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/restriction"
)

// Name is the name of the plugin.
const Name = "SeedRestriction"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(clock.RealClock{}), nil })
}

// New returns the plugin. The clock says whether client certificates have expired.
func New(c clock.PassiveClock) *restricted.Plugin {
	return restricted.New(restricted.Values{
		Client: func(u user.Info) bool { _, ok := requester.OfSeed(u); return ok },
		Rules:  restriction.SeedRules(), Decide: (*restriction.Values).Seed, Mark: restriction.Mark, Clock: c,
	})
}
