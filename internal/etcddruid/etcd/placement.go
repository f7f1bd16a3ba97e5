package etcd

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// placement is in which zones the pods of members may run.
type placement struct {
	// zones are those of the node affinity. It is empty if pods may run in any zone.
	zones []string
	// perZone is how many pods may run in one zone. 0 means any number.
	perZone int
}

// placementOf reads the spec of a pod, with what webhooks have changed. They may change pods, and not the template: the label of a node may name its zone in
// another way than the Seed.
func placementOf(replicas *int32, pod *corev1.PodSpec) placement {
	p := placement{zones: affinityZones(pod.Affinity)}
	for _, c := range pod.TopologySpreadConstraints {
		if requiresZones(c) && len(p.zones) > 0 {
			replicas, zones := int(ptr.Deref(replicas, 1)), len(p.zones)
			p.perZone = (replicas+zones-1)/zones + int(c.MaxSkew) - 1
		}
	}
	return p
}

// requiresZones reports whether a constraint requires that pods are in different zones.
func requiresZones(c corev1.TopologySpreadConstraint) bool {
	return c.TopologyKey == corev1.LabelTopologyZone && c.WhenUnsatisfiable == corev1.DoNotSchedule
}

// affinityZones returns the zones that a node affinity requires, nil if it requires none.
func affinityZones(affinity *corev1.Affinity) []string {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var zones []string
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms { // one of them has to match
		at := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelTopologyZone && r.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 {
			return nil
		}
		zones = append(zones, term.MatchExpressions[at].Values...)
	}
	return slices.Compact(slices.Sorted(slices.Values(zones)))
}

// excludes reports whether a pod can run in none of the zones of its volume: pods may not run there at all, or as many as may do have their
// volumes there. It is false if the zones are not known, such as those of a volume whose node is gone.
func (p placement) excludes(volume []string, others [][]string) bool {
	if len(p.zones) == 0 || len(volume) == 0 {
		return false
	}
	for _, zone := range volume {
		if slices.Contains(p.zones, zone) && p.takes(zone, others) {
			return false
		}
	}
	return true
}

// hasRoom reports whether one of the zones that have nodes takes another pod.
func (p placement) hasRoom(zones []string, others [][]string) bool {
	return slices.ContainsFunc(zones, func(zone string) bool { return slices.Contains(p.zones, zone) && p.takes(zone, others) })
}

// takes reports whether a zone takes another pod beside those that have their volumes there.
func (p placement) takes(zone string, others [][]string) bool {
	used := 0
	for _, other := range others {
		if len(other) == 1 && other[0] == zone { // others may run elsewhere
			used++
		}
	}
	return p.perZone == 0 || used < p.perZone
}

// volumeZones returns the zones of the nodes that can use a volume. Drivers describe that with labels of their own.
func volumeZones(volume *corev1.PersistentVolume, nodes []metav1.PartialObjectMetadata) ([]string, error) {
	matches := func(*corev1.Node) bool { return true }
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err != nil {
			return nil, fmt.Errorf("node affinity of PersistentVolume %q: %w", volume.Name, err)
		}
		matches = selector.Match
	}
	var zones []string
	for i := range nodes {
		zone := nodes[i].Labels[corev1.LabelTopologyZone]
		if zone != "" && !slices.Contains(zones, zone) && matches(&corev1.Node{ObjectMeta: nodes[i].ObjectMeta}) {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return zones, nil
}
