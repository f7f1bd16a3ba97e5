package landscape

import (
	"fmt"
	"strconv"
)

// zone is the name of the zone of a machine, which is a label of its node.
func (m Machine) zone() string { return strconv.Itoa(m.Zone) }

// zones are the names of the zones of a cluster. Each has a machine.
func (c Cluster) zones() []string {
	names := make([]string, 0, len(c.Machines))
	for number, machines := range zoneSizes(c.Machines) {
		if machines > 0 {
			names = append(names, strconv.Itoa(number))
		}
	}
	return names
}

// replicas is how many pods there are of what must not be lost with a zone.
func (c Cluster) replicas() int32 {
	if len(c.zones()) > 1 {
		return 2
	}
	return 1
}

// zoneSizes returns how many machines each zone has, by the number of the zone.
func zoneSizes(machines []Machine) []int {
	var sizes []int
	for _, machine := range machines {
		for len(sizes) <= machine.Zone {
			sizes = append(sizes, 0)
		}
		sizes[machine.Zone]++
	}
	return sizes
}

// planZones returns how many zones a cluster will have with a number of machines; 0 keeps what it has. Zones never go: the seed, control planes and
// volumes are in them. Machines keep their zone, as nodes and volumes do.
func planZones(cluster Cluster, want, machines int) (int, error) {
	have := len(cluster.zones())
	if want == 0 {
		want = max(1, have)
	}
	if want < have {
		return 0, fmt.Errorf("cluster %q has %d zones, in which volumes may be, and cannot have %d: take the landscape down first", cluster.Name, have, want)
	}
	kept := Cluster{Machines: cluster.Machines[:min(machines, len(cluster.Machines))]}
	if least := len(kept.Machines) + want - len(kept.zones()); machines < least {
		return 0, fmt.Errorf("each of %d zones needs a machine, and machines keep their zone: cluster %q needs --machines %d or more, not %d",
			want, cluster.Name, least, machines)
	}
	return want, nil
}

// emptiestZone is the zone for the next machine, of a number of zones: the first of those with the fewest machines.
func emptiestZone(machines []Machine, zones int) int {
	sizes := zoneSizes(machines)
	emptiest := 0
	for number := range zones {
		if number >= len(sizes) {
			return number
		}
		if sizes[number] < sizes[emptiest] {
			emptiest = number
		}
	}
	return emptiest
}
