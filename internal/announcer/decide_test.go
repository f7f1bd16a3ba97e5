package announcer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	of := func(holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	}
	both := []string{"a", "b"}
	for name, tc := range map[string]struct {
		view view
		want verdict
	}{
		"the first takes a new address at once":             {view{node: "a", eligible: both}, verdict{hold: true, write: true, again: renewPeriod}},
		"the second waits for its turn":                     {view{node: "b", eligible: both, quiet: turn / 3}, verdict{again: turn - turn/3}},
		"the second takes it in its turn":                   {view{node: "b", eligible: both, quiet: turn}, verdict{hold: true, write: true, again: renewPeriod}},
		"a node that is not eligible takes none":            {view{node: "c", eligible: both, quiet: time.Hour}, verdict{}},
		"the holder renews":                                 {view{node: "b", eligible: both, held: true, lease: of("b"), quiet: renewPeriod}, verdict{hold: true, write: true, again: renewPeriod}},
		"the holder has renewed":                            {view{node: "b", eligible: both, held: true, lease: of("b"), quiet: time.Second}, verdict{hold: true, again: renewPeriod - time.Second}},
		"the holder after a restart":                        {view{node: "b", eligible: both, lease: of("b"), quiet: time.Second}, verdict{hold: true, write: true, again: renewPeriod}},
		"the preferred node does not take it away":          {view{node: "a", eligible: both, lease: of("b"), quiet: time.Second}, verdict{again: leaseDuration - time.Second}},
		"the holder is dead":                                {view{node: "a", eligible: both, lease: of("b"), quiet: leaseDuration}, verdict{hold: true, write: true, again: renewPeriod}},
		"the holder is dead, and it is the turn of another": {view{node: "b", eligible: []string{"a", "b"}, lease: of("c"), quiet: leaseDuration}, verdict{again: turn}},
		"the holder is not eligible any more":               {view{node: "a", eligible: []string{"b"}, held: true, lease: of("a")}, verdict{write: true}},
		"no node is eligible, so the holder keeps it":       {view{node: "a", held: true, lease: of("a"), quiet: time.Hour}, verdict{hold: true, write: true, again: renewPeriod}},
		"the holder cannot answer":                          {view{node: "a", eligible: []string{"a"}, lease: of("a"), unable: time.Second}, verdict{write: true, again: time.Second}},
		"a node that could not answer waits":                {view{node: "a", eligible: both, quiet: time.Hour, unable: time.Second}, verdict{again: time.Second}},
		"another node took it":                              {view{node: "a", eligible: both, held: true, lease: of("b")}, verdict{again: leaseDuration}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.view), cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEligible(t *testing.T) {
	node := func(name string, edit ...func(*corev1.Node)) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		for _, e := range edit {
			e(&n)
		}
		return n
	}
	unready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	excluded := func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }
	deleted := func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.Now()) }
	nodes := []corev1.Node{node("a"), node("b"), node("c", unready), node("d", excluded), node("e", deleted)}
	on := func(name string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{NodeName: &name, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	}
	endpoints := []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{on("a", false), on("b", true), on("c", true)}}}
	local := &corev1.Service{Spec: corev1.ServiceSpec{ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}}
	if got := eligible(local, "192.0.2.1", nodes, endpoints); !cmp.Equal(got, []string{"b"}) {
		t.Errorf("nodes with endpoints are %v, want b", got)
	}
	// Different nodes are the first for different addresses.
	first := map[string]bool{}
	for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.7", "192.0.2.8"} {
		got := eligible(&corev1.Service{}, address, nodes, endpoints)
		if len(got) != 2 {
			t.Fatalf("nodes are %v, want a and b", got)
		}
		first[got[0]] = true
	}
	if len(first) != 2 {
		t.Errorf("%v answers for all addresses", first)
	}
}
