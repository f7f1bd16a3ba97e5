package announcer

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

const (
	// renewPeriod is how often the node of an address renews its Lease, and announces the address again.
	renewPeriod = 3 * time.Second
	// leaseDuration is how long the others wait for that: two renewals may be late.
	leaseDuration = 10 * time.Second
	// turn is the time that a node has to take an address before the next one tries, so that not all of them try at once.
	turn = 300 * time.Millisecond
	// addressLifetime is after when the kernel removes an address that nobody has renewed: the process is dead.
	addressLifetime = 30 * time.Second
)

// verdict is what a node does about an address.
type verdict struct {
	// hold says that the node answers for the address.
	hold bool
	// write says that the Lease is to be written: taken or renewed if the node holds the address, released if not.
	write bool
	// again is when to look again. Zero means at the next change.
	again time.Duration
}

// view is what a node knows of an address.
type view struct {
	node     string
	eligible []string // nodes that may answer, the preferred first
	held     bool     // the node answers now
	lease    *coordinationv1.Lease
	quiet    time.Duration // how long this node has not seen the Lease change: clocks of nodes may differ
	unable   time.Duration // how long this node does not try any more, as it could not answer
}

// decide returns what the node does. The holder of the Lease answers. It keeps an address that no node is eligible for, as nobody is better.
func decide(v view) verdict {
	holder := ""
	if v.lease != nil {
		holder = ptr.Deref(v.lease.Spec.HolderIdentity, "")
	}
	rank := slices.Index(v.eligible, v.node)
	switch {
	case v.unable > 0:
		return verdict{write: holder == v.node, again: v.unable}
	case holder == v.node && rank < 0 && len(v.eligible) > 0:
		return verdict{write: true}
	case holder == v.node && v.held && v.quiet < renewPeriod:
		return verdict{hold: true, again: renewPeriod - v.quiet}
	case holder == v.node:
		return verdict{hold: true, write: true, again: renewPeriod}
	case rank < 0:
		return verdict{}
	}
	wait := time.Duration(rank) * turn
	if holder != "" {
		wait += leaseDuration
	}
	if v.quiet < wait {
		return verdict{again: wait - v.quiet}
	}
	return verdict{hold: true, write: true, again: renewPeriod}
}

// eligible returns the nodes that may answer for an address of a Service. The order differs from address to address, so that they are spread.
func eligible(service *corev1.Service, address string, nodes []corev1.Node, endpoints []discoveryv1.EndpointSlice) []string {
	local := service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	with := map[string]bool{}
	for i := range endpoints {
		for _, endpoint := range endpoints[i].Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				with[ptr.Deref(endpoint.NodeName, "")] = true
			}
		}
	}
	var names []string
	for i := range nodes {
		if usable(&nodes[i]) && (!local || with[nodes[i].Name]) {
			names = append(names, nodes[i].Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(a, address), weight(b, address)), cmp.Compare(a, b))
	})
	return names
}

// weight is a number that depends on both. Of a weaker hash, the order would be the same for most addresses.
func weight(node, address string) uint64 {
	sum := sha256.Sum256([]byte(node + " " + address))
	return binary.BigEndian.Uint64(sum[:8])
}

// usable says whether a node may answer for addresses.
func usable(node *corev1.Node) bool {
	if _, excluded := node.Labels[corev1.LabelNodeExcludeBalancers]; excluded || node.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
