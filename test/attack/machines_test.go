package attack

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/networkpolicy/general"
	"gardener.cloud/gardener/internal/provider/local"
)

// peer is an end of a connection: a pod of the seed, or only an address.
type peer struct {
	namespace string
	// role is the role of the namespace, app the label of the pod.
	role, app string
	address   string
}

func (p peer) namespaceLabels() labels.Set {
	return labels.Set{corev1.LabelMetadataName: p.namespace, "gardener.cloud/role": p.role}
}

// in says whether a rule of a policy in a namespace is for the peer.
func (p peer) in(t *testing.T, namespace string, peers []networkingv1.NetworkPolicyPeer) bool {
	t.Helper()
	matches := func(selector *metav1.LabelSelector, set labels.Set) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(set)
	}
	contains := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(p.address)) }
	return slices.ContainsFunc(peers, func(other networkingv1.NetworkPolicyPeer) bool {
		switch {
		case other.IPBlock != nil:
			return contains(other.IPBlock.CIDR) && !slices.ContainsFunc(other.IPBlock.Except, contains)
		case p.namespace == "":
			return false
		case other.NamespaceSelector == nil:
			return p.namespace == namespace && matches(other.PodSelector, labels.Set{"k8s-app": p.app})
		}
		return matches(other.NamespaceSelector, p.namespaceLabels()) && (other.PodSelector == nil || matches(other.PodSelector, labels.Set{"k8s-app": p.app}))
	})
}

// A machine is a pod of the seed on which everything is the owner's of the shoot. It must not reach other shoots, the seed, or what gives credentials of the
// seed's nodes to any pod, nor be reached by other shoots.
func TestMachinesStayOutOfTheSeed(t *testing.T) {
	const own = "infra-shoot--attackers--one"
	policy := local.MachinesPolicy(own, general.Networks{Own: []string{"10.1.0.0/16", "10.2.0.0/16", "172.30.0.0/24"}, Blocked: []string{"192.168.7.0/24"}},
		[]localv1alpha1.MachineRegistry{{Host: "registry.k8s.io", Mirrors: []string{"http://172.30.0.1:5000/v2/registry.k8s.io"}}})
	reaches := func(to peer, port int32) bool {
		return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			ofPort := func(p networkingv1.NetworkPolicyPort) bool {
				return *p.Protocol == corev1.ProtocolTCP && p.Port.IntVal == port
			}
			return (len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, ofPort)) && to.in(t, own, rule.To)
		})
	}
	reached := func(from peer) bool {
		return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool { return from.in(t, own, rule.From) })
	}
	if selector := policy.Spec.PodSelector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 || len(policy.Spec.PolicyTypes) != 2 {
		t.Errorf("the policy is not for all pods and directions: %+v", policy.Spec)
	}
	machine := peer{namespace: own, address: "10.1.0.5"}
	victim := peer{namespace: "infra-shoot--victims--one", address: "10.1.0.6"}
	controlPlane := peer{namespace: "shoot--victims--one", role: "shoot", app: "etcd", address: "10.1.0.7"}
	garden := peer{namespace: "garden", app: "gardenlet", address: "10.1.0.8"}
	outside := peer{address: "203.0.113.1"}
	for name, tc := range map[string]struct {
		to   peer
		port int32
		want bool
	}{
		"a machine of the same shoot":         {machine, 8472, true},
		"the gateway to its control plane":    {peer{namespace: "gateway", role: "istio-ingress", address: "10.1.0.9"}, 8443, true},
		"DNS":                                 {peer{namespace: "kube-system", app: "kube-dns", address: "10.1.0.10"}, 53, true},
		"the mirror of the landscape":         {peer{address: "172.30.0.1"}, 5000, true},
		"the internet":                        {outside, 443, true},
		"a network of the owner":              {peer{address: "192.168.1.1"}, 443, true},
		"a machine of another shoot":          {victim, 22, false},
		"the etcd of another shoot":           {controlPlane, 2379, false},
		"the control plane of its own shoot":  {peer{namespace: "shoot--attackers--one", role: "shoot", app: "etcd", address: "10.1.0.11"}, 2379, false},
		"an extension":                        {peer{namespace: "extension-provider-local-abcde", role: "extension", address: "10.1.0.12"}, 8443, false},
		"the gardenlet":                       {garden, 2728, false},
		"metrics of the DNS server":           {peer{namespace: "kube-system", app: "kube-dns", address: "10.1.0.10"}, 9153, false},
		"the kube-apiserver of the seed":      {peer{address: "10.2.0.1"}, 443, false},
		"that by the address of its node":     {peer{address: "172.30.0.2"}, 6443, false},
		"a kubelet of the seed":               {peer{address: "172.30.0.2"}, 10250, false},
		"another port where the mirror is":    {peer{address: "172.30.0.1"}, 22, false},
		"the metadata service":                {peer{address: "169.254.169.254"}, 80, false},
		"the metadata service of AWS by IPv6": {peer{address: "fd00:ec2::254"}, 80, false},
		"that of Azure":                       {peer{address: "168.63.129.16"}, 80, false},
		"what the seed blocks":                {peer{address: "192.168.7.1"}, 443, false},
	} {
		if got := reaches(tc.to, tc.port); got != tc.want {
			t.Errorf("a machine reaches %s: %v", name, got)
		}
	}
	for name, tc := range map[string]struct {
		from peer
		want bool
	}{
		"a machine of the same shoot": {machine, true}, "a machine of another shoot": {victim, false}, "a control plane": {controlPlane, false},
		"the garden": {garden, false}, "the internet": {outside, false},
	} {
		if got := reached(tc.from); got != tc.want {
			t.Errorf("%s reaches a machine: %v", name, got)
		}
	}
}
