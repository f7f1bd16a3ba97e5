//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
)

// testHosts tests a shoot whose node is a server that existed before, and is free again afterwards.
func testHosts(t *testing.T, l *landscape) {
	if hosts := l.hosts(t); len(hosts) < 2 { // A running landscape may have more.
		l.run(t, "up", "--without-shoot", "--hosts=2")
	}
	const other = "shoot--local--local"
	before := l.snapshot(t, other)
	free := available(l.hosts(t))
	shoot := sample(t, example.HostsShoot)
	shoot.Name = "server"
	shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = 1, 1
	key := l.create(t, shoot)
	l.basic(t, "it is created on a server", func(t *testing.T) { l.awaitShoot(t, key, kube.ShootHealthy) })
	if now := available(l.hosts(t)); len(now) != len(free)-1 {
		t.Errorf("available are %v, and were %v", now, free)
	}
	testInside(t, l, l.shoot(t, key))
	l.timed(t, "it is deleted, and the server is free again", func(t *testing.T) {
		l.deleteShoot(t, key)
		await(t, l.client, func(hosts []*hostsv1alpha1.Host) error {
			if now := available(hosts); !slices.Equal(now, free) {
				return fmt.Errorf("available are %v, want %v", now, free)
			}
			return nil
		})
		l.expectAsBefore(t, before, other)
	})
}

// hosts are those of the inventory, if there is one.
func (l *landscape) hosts(t *testing.T) []*hostsv1alpha1.Host {
	t.Helper()
	list := &hostsv1alpha1.HostList{}
	if err := l.client.List(t.Context(), list); err != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	var hosts []*hostsv1alpha1.Host
	for i := range list.Items {
		hosts = append(hosts, &list.Items[i])
	}
	return hosts
}

// available are the names of hosts that may be claimed.
func available(hosts []*hostsv1alpha1.Host) (names []string) {
	for _, host := range hosts {
		if host.Status.Phase == hostsv1alpha1.HostAvailable {
			names = append(names, host.Name)
		}
	}
	slices.Sort(names)
	return names
}
