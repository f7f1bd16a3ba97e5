package landscape

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gardener.cloud/gardener/internal/distribution"
)

func TestNeeds(t *testing.T) {
	one := []Cluster{{Name: "runtime", Machines: []Machine{{"runtime-0", 0, 0}}}}
	two := slices.Concat(one, []Cluster{{Name: "seed2", Machines: []Machine{{"seed2-0", 1, 0}}}})
	seeds := slices.Concat(one, []Cluster{{Name: "local-2", Machines: []Machine{{"local-2-0", 1, 0}}, Seed: true}})
	for name, tc := range map[string]struct {
		clusters            []Cluster
		running             []string
		wantShoot, hasShoot bool
		memory, disk        int64
	}{
		"a landscape with a shoot":         {clusters: one, wantShoot: true, memory: 5 << 30, disk: 5 << 30},
		"the same after a reboot":          {clusters: one, wantShoot: true, hasShoot: true, memory: 5 << 30, disk: 5 << 30},
		"a shoot for what runs":            {clusters: one, running: []string{"runtime-0"}, wantShoot: true, memory: 2 << 30, disk: 5 << 30},
		"a landscape without a shoot":      {clusters: one, memory: 2 << 30, disk: 5 << 30},
		"a second cluster beside the rest": {clusters: two, running: []string{"runtime-0"}, memory: 2 << 30, disk: 5 << 30},
		"two seeds, with a shoot":          {clusters: seeds, wantShoot: true, memory: 7 << 30, disk: 5 << 30},
		"two seeds, without a shoot":       {clusters: seeds, memory: 4 << 30, disk: 5 << 30},
		"a second seed for what runs":      {clusters: seeds, running: []string{"runtime-0"}, wantShoot: true, hasShoot: true, memory: 2 << 30, disk: 5 << 30},
		"all runs, with a shoot":           {clusters: two, running: []string{"runtime-0", "seed2-0"}, wantShoot: true, hasShoot: true, disk: 1 << 30},
		"all runs, without a shoot":        {clusters: one, running: []string{"runtime-0"}, disk: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			runs := func(machine string) bool { return slices.Contains(tc.running, machine) }
			if memory, disk := needs(tc.clusters, runs, tc.wantShoot, tc.hasShoot); memory != tc.memory || disk != tc.disk {
				t.Errorf("needs() = %d, %d, want %d, %d", memory, disk, tc.memory, tc.disk)
			}
		})
	}
}

// When the checkout has no artifact of a cluster's version any more, the error says how to recreate the landscape.
func TestVersionIsGone(t *testing.T) {
	gone := func(string) (*distribution.Artifact, error) { return nil, errors.New("no such version") }
	l := &Landscape{Name: "test", state: state{Clusters: []Cluster{{Name: "runtime", Version: "v1.30.0"}}}}
	const command = "make down up NAME=test"
	if _, err := l.kubernetes(gone, l.state.Clusters[0]); err == nil || !strings.Contains(err.Error(), command) {
		t.Errorf("error = %v, want one with %q", err, command)
	}
	if _, err := l.kubernetes(gone, Cluster{Name: "new", Version: "v1.30.0"}); err == nil || strings.Contains(err.Error(), command) {
		t.Errorf("error = %v for a new cluster", err)
	}
}
