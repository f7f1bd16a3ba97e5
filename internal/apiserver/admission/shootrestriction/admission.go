// Package shootrestriction lets clients of a self-hosted shoot write only what is of their shoot: its gardenlet, its extensions, and gardenadm.
package shootrestriction

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
const Name = "ShootRestriction"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(clock.RealClock{}), nil })
}

// New returns the plugin. The clock says whether client certificates have expired.
func New(c clock.PassiveClock) *restricted.Plugin {
	return restricted.New(restricted.Values{
		Client: func(u user.Info) bool { _, ok := requester.OfShoot(u); return ok },
		Rules:  restriction.ShootRules(), Decide: (*restriction.Values).Shoot, Clock: c,
	})
}
