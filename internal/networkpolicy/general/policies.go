package general

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/destination"
)

// Networks are address ranges, as CIDRs.
type Networks struct {
	// Own are those of the cluster: its nodes, pods and Services. Other policies allow connections to them.
	Own []string
	// Blocked are those that pods may only connect to with a label for it, besides alwaysBlocked.
	Blocked []string
}

// dnsPorts are the ports of DNS: that of the Service, and that of its pods.
var dnsPorts = []int32{53, 8053}

// sixToFour is the range of RFC 3056.
const sixToFour = "2002::/16"

var (
	everywhere = []string{"0.0.0.0/0", "::/0"}
	// private are the ranges of RFC 1918, RFC 6598 and RFC 4193.
	private = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}
	// alwaysBlocked are link-local addresses, and those of metadata services.
	alwaysBlocked = append([]string{
		"169.254.0.0/16", // 169.254.169.254 of most infrastructures, 169.254.170.2 of AWS
		"fe80::/10",
	}, destination.Metadata...)
	// nodeLocalDNS are the addresses of the DNS cache on each node, if there is one.
	nodeLocalDNS = []string{"169.254.20.10/32", "fd30:1319:f1e:230b::1/128"}
)

// translated returns networks with those of IPv6 that lead to them: in a cluster with NAT64 or 6to4, an address of IPv4 can be reached by one of IPv6,
// to which no rule for IPv4 applies.
func translated(networks ...[]string) []string {
	all := slices.Concat(networks...)
	return append(all, destination.Translated(all)...)
}

// policies are those of every namespace: all traffic is denied that pods have no label for. The endpoints are those of the API server of
// the cluster.
func policies(networks Networks, endpoints []endpoint) []*networkingv1.NetworkPolicy {
	networks.Own, networks.Blocked = translated(networks.Own), translated(alwaysBlocked, networks.Blocked)
	blocked := labelled("allow-to-blocked-cidrs", constants.NetworkPolicyToBlockedCIDRs)
	for _, cidr := range minimal(networks.Blocked) {
		blocked.Spec.Egress = append(blocked.Spec.Egress, to(cidr))
	}
	publicNetworks := labelled("allow-to-public-networks", constants.NetworkPolicyToPublicNetworks)
	for _, cidr := range everywhere {
		publicNetworks.Spec.Egress = append(publicNetworks.Spec.Egress, toAllBut(cidr, slices.Concat(translated(private), networks.Own, networks.Blocked))...)
	}
	privateNetworks := labelled("allow-to-private-networks", constants.NetworkPolicyToPrivateNetworks)
	for _, cidr := range translated(private) {
		if within(cidr, sixToFour) { // private addresses have none that lead to them
			continue
		}
		privateNetworks.Spec.Egress = append(privateNetworks.Spec.Egress, toAllBut(cidr, slices.Concat(networks.Own, networks.Blocked))...)
	}
	apiServer := labelled("allow-to-runtime-apiserver", constants.NetworkPolicyToRuntimeAPIServer)
	for _, e := range endpoints {
		rule := to(e.cidr)
		rule.Ports = []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, e.port)}
		apiServer.Spec.Egress = append(apiServer.Spec.Egress, rule)
	}
	all := []*networkingv1.NetworkPolicy{denyAll(), dns(), apiServer, publicNetworks, privateNetworks, blocked}
	return slices.DeleteFunc(all, func(p *networkingv1.NetworkPolicy) bool {
		// A policy without rules allows nothing, so it is not necessary.
		return p.Name != denyAllName && len(p.Spec.Egress) == 0
	})
}

const denyAllName = "deny-all"

func denyAll() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: denyAllName, Annotations: map[string]string{
			constants.GardenerDescription: "Disables all ingress and egress traffic of the pods in this namespace.",
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// labelled is a policy for the pods with a label, without rules.
func labelled(name, label string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			constants.GardenerDescription: fmt.Sprintf("Allows egress traffic of the pods labelled %s=%s.", label, constants.NetworkPolicyAllowed),
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{label: constants.NetworkPolicyAllowed}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		},
	}
}

func dns() *networkingv1.NetworkPolicy {
	policy := labelled("allow-to-dns", constants.NetworkPolicyToDNS)
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{ToDNS()}
	return policy
}

// ToDNS is the rule for the DNS servers of the cluster.
func ToDNS() networkingv1.NetworkPolicyEgressRule {
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, number := range dnsPorts {
			ports = append(ports, port(protocol, number))
		}
	}
	servers := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}},
		PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "k8s-app", Operator: metav1.LabelSelectorOpIn, Values: []string{"kube-dns", "node-local-dns"}},
		}},
	}
	rule := networkingv1.NetworkPolicyEgressRule{Ports: ports, To: []networkingv1.NetworkPolicyPeer{servers}}
	for _, cidr := range nodeLocalDNS {
		rule.To = append(rule.To, to(cidr).To...)
	}
	return rule
}

// ToWorld are the rules for public and private networks: what pods with the labels for both may connect to.
func ToWorld(networks Networks) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, cidr := range everywhere {
		rules = append(rules, toAllBut(cidr, translated(alwaysBlocked, networks.Own, networks.Blocked))...)
	}
	return rules
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

// to is the rule for a range.
func to(cidr string) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}}
}

// toAllBut is the rule for a range without others. There is none if another covers the range.
func toAllBut(cidr string, others []string) []networkingv1.NetworkPolicyEgressRule {
	others = minimal(others)
	if slices.ContainsFunc(others, func(other string) bool { return other == cidr || within(cidr, other) }) {
		return nil
	}
	rule := to(cidr)
	for _, other := range others {
		if within(other, cidr) {
			rule.To[0].IPBlock.Except = append(rule.To[0].IPBlock.Except, other)
		}
	}
	return []networkingv1.NetworkPolicyEgressRule{rule}
}

// minimal returns the valid ranges, without those that others cover.
func minimal(cidrs []string) []string {
	var out []string
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		cidr = prefix.Masked().String() // so that equal ranges have equal strings
		covered := func(other string) bool { return other == cidr || within(cidr, other) }
		if slices.ContainsFunc(out, covered) {
			continue
		}
		out = append(slices.DeleteFunc(out, func(other string) bool { return within(other, cidr) }), cidr)
	}
	return out
}

// within says whether a range is a part of another one, which the API requires of exceptions.
func within(inner, outer string) bool {
	in, err := netip.ParsePrefix(inner)
	if err != nil {
		return false
	}
	out, err := netip.ParsePrefix(outer)
	return err == nil && in.Bits() > out.Bits() && out.Contains(in.Addr())
}
