//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
)

// testHosts tests a shoot whose node is a server that existed before, and is free again afterwards.
func testHosts(t *testing.T, l *landscape) {
	l.run(t, "up", "--without-shoot", "--hosts=2")
	before := l.snapshot(t, "shoot--local--local")
	shoot := sample(t, example.HostsShoot)
	shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = 1, 1
	key := l.create(t, shoot)
	l.basic(t, "it is created on a server", func(t *testing.T) { l.awaitShoot(t, key, kube.ShootHealthy) })
	testInside(t, l, l.shoot(t, key))
	l.timed(t, "it is deleted, and the server is free again", func(t *testing.T) {
		l.deleteShoot(t, key)
		await(t, l.client, func(hosts []*hostsv1alpha1.Host) error {
			for _, host := range hosts {
				if host.Status.Phase != hostsv1alpha1.HostAvailable {
					return fmt.Errorf("host %s is %s: %s", host.Name, host.Status.Phase, host.Status.Message)
				}
			}
			return nil
		})
		l.expectAsBefore(t, before, "shoot--local--local")
	})
}
