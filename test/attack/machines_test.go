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

// labels are those of the pod. A bastion is named like its app.
func (p peer) labels() labels.Set {
	return labels.Set{"k8s-app": p.app, "app": p.app, "bastion": p.app}
}

func matches(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(set)
}

// in says whether a rule of a policy in a namespace is for the peer.
func (p peer) in(t *testing.T, namespace string, peers []networkingv1.NetworkPolicyPeer) bool {
	t.Helper()
	contains := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(p.address)) }
	return slices.ContainsFunc(peers, func(other networkingv1.NetworkPolicyPeer) bool {
		switch {
		case other.IPBlock != nil:
			return contains(other.IPBlock.CIDR) && !slices.ContainsFunc(other.IPBlock.Except, contains)
		case p.namespace == "":
			return false
		case other.NamespaceSelector == nil:
			return p.namespace == namespace && matches(t, other.PodSelector, p.labels())
		}
		return matches(t, other.NamespaceSelector, p.namespaceLabels()) && (other.PodSelector == nil || matches(t, other.PodSelector, p.labels()))
	})
}

// policies are those of a namespace with machines.
type policies []*networkingv1.NetworkPolicy

// reach says whether a pod of the namespace can connect to a TCP port of another peer.
func (all policies) reach(t *testing.T, from, to peer, port int32) bool {
	t.Helper()
	return all.allow(t, from, networkingv1.PolicyTypeEgress, func(policy *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return (len(rule.To) == 0 || to.in(t, policy.Namespace, rule.To)) && hasPort(rule.Ports, port)
		})
	})
}

// admit says whether another peer can connect to a TCP port of a pod of the namespace.
func (all policies) admit(t *testing.T, from, to peer, port int32) bool {
	t.Helper()
	return all.allow(t, to, networkingv1.PolicyTypeIngress, func(policy *networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
			return (len(rule.From) == 0 || from.in(t, policy.Namespace, rule.From)) && hasPort(rule.Ports, port)
		})
	})
}

// allow says whether a policy of a pod allows something, or there is none for it.
func (all policies) allow(t *testing.T, pod peer, direction networkingv1.PolicyType, allows func(*networkingv1.NetworkPolicy) bool) bool {
	t.Helper()
	isolated := false
	for _, policy := range all {
		if policy.Namespace != pod.namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) || !matches(t, &policy.Spec.PodSelector, pod.labels()) {
			continue
		}
		if isolated = true; allows(policy) {
			return true
		}
	}
	return !isolated
}

func hasPort(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return *p.Protocol == corev1.ProtocolTCP && p.Port.IntVal == port
	})
}

// own is the namespace of the attacker's machines.
const own = "infra-shoot--attackers--one"

// policiesOfAttacker are the policies of its machines and of its bastion, which the internet reaches.
func policiesOfAttacker() policies {
	return policies{
		local.MachinesPolicy(own, general.Networks{Own: []string{"10.1.0.0/16", "10.2.0.0/16", "172.30.0.0/24"}, Blocked: []string{"192.168.7.0/24"}},
			[]localv1alpha1.MachineRegistry{{Host: "registry.k8s.io", Mirrors: []string{"http://172.30.0.1:5000/v2/registry.k8s.io"}}}),
		local.BastionPolicy(own, "bastion", []string{"203.0.113.0/24"}),
	}
}

// A machine is a pod of the seed on which everything is the owner's of the shoot. It must not reach other shoots, the seed, or what gives credentials of the
// seed's nodes to any pod, nor be reached by other shoots.
func TestMachinesStayOutOfTheSeed(t *testing.T) {
	all := policiesOfAttacker()
	reaches := func(to peer, port int32) bool { return all.reach(t, peer{namespace: own, app: "machine"}, to, port) }
	reached := func(from peer) bool { return all.admit(t, from, peer{namespace: own, app: "machine"}, 10250) }
	for _, app := range []string{"machine", "", "of a former version"} {
		if all.reach(t, peer{namespace: own, app: app}, peer{address: "172.30.0.2"}, 6443) {
			t.Errorf("a pod %q of the namespace is not isolated", app)
		}
	}
	machine := peer{namespace: own, app: "machine", address: "10.1.0.5"}
	bastion := peer{namespace: own, app: "bastion", address: "10.1.0.13"}
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
		"a bastion":                           {bastion, 2222, false},
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
		"the garden": {garden, false}, "the internet": {outside, false}, "a bastion": {bastion, false},
	} {
		if got := reached(tc.from); got != tc.want {
			t.Errorf("%s reaches a machine: %v", name, got)
		}
	}
}

// A bastion is a pod of the seed that a tenant connects to, and lets forward connections. It must reach SSH servers of the machines of its shoot and nothing else, and
// must not be reached by others than the networks that its Bastion names.
func TestBastionsReachOnlySSHServersOfMachines(t *testing.T) {
	all := policiesOfAttacker()
	bastion := peer{namespace: own, app: "bastion", address: "10.1.0.13"}
	machine := peer{namespace: own, app: "machine", address: "10.1.0.5"}
	outside := peer{address: "203.0.113.1"}
	for name, tc := range map[string]struct {
		to   peer
		port int32
		want bool
	}{
		"the SSH server of a machine":               {machine, 22, true},
		"the kubelet of a machine":                  {machine, 10250, false},
		"a machine of another shoot":                {peer{namespace: "infra-shoot--victims--one", app: "machine", address: "10.1.0.6"}, 22, false},
		"another bastion":                           {bastion, 2222, false},
		"another pod beside the machines":           {peer{namespace: own, app: "x", address: "10.1.0.14"}, 22, false},
		"the control plane of its own shoot":        {peer{namespace: "shoot--attackers--one", role: "shoot", app: "etcd", address: "10.1.0.11"}, 22, false},
		"the gateway to its control plane":          {peer{namespace: "gateway", role: "istio-ingress", address: "10.1.0.9"}, 22, false},
		"DNS":                                       {peer{namespace: "kube-system", app: "kube-dns", address: "10.1.0.10"}, 53, false},
		"the SSH server of a node of the seed":      {peer{address: "172.30.0.2"}, 22, false},
		"the kube-apiserver of the seed":            {peer{address: "10.2.0.1"}, 443, false},
		"the SSH server of another computer":        {outside, 22, false},
		"the metadata service of an infrastructure": {peer{address: "169.254.169.254"}, 80, false},
	} {
		if got := all.reach(t, bastion, tc.to, tc.port) && (tc.to.namespace != own || all.admit(t, bastion, tc.to, tc.port)); got != tc.want {
			t.Errorf("a bastion reaches %s: %v", name, got)
		}
	}
	for name, tc := range map[string]struct {
		from peer
		port int32
		want bool
	}{
		"a network of the Bastion":           {outside, 2222, true},
		"a network of the Bastion, SSH port": {outside, 22, false},
		"another network":                    {peer{address: "198.51.100.1"}, 2222, false},
		"a machine of the same shoot":        {machine, 2222, false},
		"a machine of another shoot":         {peer{namespace: "infra-shoot--victims--one", app: "machine", address: "10.1.0.6"}, 2222, false},
	} {
		if got := all.admit(t, tc.from, bastion, tc.port); got != tc.want {
			t.Errorf("%s reaches a bastion: %v", name, got)
		}
	}
}
