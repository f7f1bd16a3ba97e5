package values

import (
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// Credentials returns the values of the credentials of a shoot.
func Credentials(s *observed.State, seedAPI client.Client, clock clock.PassiveClock) credentials.Values {
	v := credentials.Values{
		SeedAPI: seedAPI, Namespace: s.Namespace, Rotation: credentials.RotationOfShoot(s.Shoot.Status.Credentials), Workers: !s.Shoot.Workerless(),
		SSHKey: s.Shoot.Spec.Provider.SSHAccessEnabled(), HostNames: s.Hosts(), TunnelHostName: s.TunnelHost(), Clock: clock, Replicated: s.HighlyAvailable(),
		VerticalPodAutoscaler: s.Shoot.VerticalPodAutoscalerWanted(),
		Monitoring:            ptr.Deref(s.Shoot.Spec.Purpose, "") != corev1beta1.ShootPurposeTesting,
	}
	if address, err := s.KubernetesServiceIP(); err == nil && address != nil {
		v.Addresses = append(v.Addresses, address)
	}
	return v
}
