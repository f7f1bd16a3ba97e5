package values

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// Credentials returns the values of the credentials of a shoot.
func Credentials(s *observed.State, seedAPI client.Client, clock clock.PassiveClock) credentials.Values {
	v := credentials.Values{
		SeedAPI: seedAPI, Namespace: s.Namespace, Status: s.Shoot.Status.Credentials, Workers: !s.Shoot.Workerless(),
		SSHKey: s.Shoot.Spec.Provider.SSHAccessEnabled(), HostNames: s.Hosts(), TunnelHostName: s.TunnelHost(), Clock: clock, Replicated: s.HighlyAvailable(),
	}
	if address, err := s.KubernetesServiceIP(); err == nil && address != nil {
		v.Addresses = append(v.Addresses, address)
	}
	return v
}
