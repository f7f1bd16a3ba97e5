package local

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/networkpolicy/general"
)

// machinesPolicyName is the name of the policy of a namespace with machines.
const machinesPolicyName = "machines"

// networksOf returns the networks of the cluster with machines: all that are known of the seed, or the pods of another cluster. The nodes of that may have
// the address of the seed's gateway. A Seed has no field for the IPv6 addresses of its pods beside IPv4, which machines of IPv4 shoots have, too.
func networksOf(seed *corev1beta1.Seed, ipv6Network string, state *infrastructureState, inSeed bool) general.Networks {
	networks := general.Networks{Own: state.Nodes, Blocked: seed.Spec.Networks.BlockCIDRs}
	if inSeed {
		networks.Own = append([]string{seed.Spec.Networks.Pods, seed.Spec.Networks.Services}, state.Nodes...)
		if nodes := seed.Spec.Networks.Nodes; nodes != nil {
			networks.Own = append(networks.Own, *nodes)
		}
		if ipv6Network != "" {
			networks.Own = append(networks.Own, ipv6Network)
		}
	}
	return networks
}

// MachinesPolicy returns the policy for all pods of a namespace with machines but bastions, so that it is for those of former versions, too. Everything on a
// machine is the owner's of the shoot: it reaches the other machines of the shoot, with which it exchanges what its pods send to each other, DNS, gateways to control
// planes, registries and what is outside of the cluster. Other machines of the shoot alone reach it, as the control plane does through the tunnel that a
// machine has opened.
func MachinesPolicy(namespace string, networks general.Networks, registries []localv1alpha1.MachineRegistry) *networkingv1.NetworkPolicy {
	machines := []networkingv1.NetworkPolicyPeer{{PodSelector: noBastion()}}
	gateways := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: constants.GardenRole, Operator: metav1.LabelSelectorOpIn,
		Values: []string{constants.GardenRoleIstioIngress, constants.GardenRoleExposureClassHandler},
	}}}}
	egress := []networkingv1.NetworkPolicyEgressRule{{To: machines}, general.ToDNS(), {To: []networkingv1.NetworkPolicyPeer{gateways}}}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machinesPolicyName, Annotations: map[string]string{
			constants.GardenerDescription: "Keeps machines of a shoot from other shoots, from the cluster that they run in, and from metadata services.",
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *noBastion(),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: machines}, {
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: localv1alpha1.BastionLabels()}}},
				Ports: []networkingv1.NetworkPolicyPort{tcp(nodeSSHPort)},
			}},
			Egress: slices.Concat(egress, toRegistries(registries), general.ToWorld(networks)),
		},
	}
}

// BastionPolicy returns the policy for a bastion: the networks reach its SSH server, or all if none are given, and it reaches those of machines, and nothing else.
func BastionPolicy(namespace, name string, networks []string) *networkingv1.NetworkPolicy {
	var ingress []networkingv1.NetworkPolicyIngressRule
	if len(networks) == 0 {
		ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{tcp(bastionPort)}}}
	}
	for _, network := range networks {
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{
			From:  []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: network}}},
			Ports: []networkingv1.NetworkPolicyPort{tcp(bastionPort)},
		})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.BastionLabels(), Annotations: map[string]string{
			constants.GardenerDescription: "Lets a bastion connect to the SSH servers of machines, and be reached from the networks of its Bastion.",
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: bastionSelector(name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     ingress,
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To:    []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: localv1alpha1.MachineLabels()}}},
				Ports: []networkingv1.NetworkPolicyPort{tcp(nodeSSHPort)},
			}},
		},
	}
}

// noBastion selects all pods but bastions.
func noBastion() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	for key, value := range localv1alpha1.BastionLabels() {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value},
		})
	}
	return selector
}

func tcp(port int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(port))}
}

// toRegistries returns the rules for registries that are configured with an address, which may be in a network of the cluster.
func toRegistries(registries []localv1alpha1.MachineRegistry) []networkingv1.NetworkPolicyEgressRule {
	var servers []netip.AddrPort
	for _, registry := range registries {
		for _, server := range append([]string{registry.Server}, registry.Mirrors...) {
			if address, ok := addressOf(server); ok {
				servers = append(servers, address)
			}
		}
	}
	slices.SortFunc(servers, netip.AddrPort.Compare)
	var rules []networkingv1.NetworkPolicyEgressRule
	for _, server := range slices.Compact(servers) {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			Ports: []networkingv1.NetworkPolicyPort{tcp(int32(server.Port()))},
			To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{
				CIDR: netip.PrefixFrom(server.Addr(), server.Addr().BitLen()).String(),
			}}},
		})
	}
	return rules
}

// addressOf returns the address in a URL, if it has one instead of a name.
func addressOf(server string) (netip.AddrPort, bool) {
	parsed, err := url.Parse(server)
	if err != nil {
		return netip.AddrPort{}, false
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil {
		return netip.AddrPort{}, false
	}
	port, err := strconv.ParseUint(cmp.Or(parsed.Port(), map[string]string{"http": "80"}[parsed.Scheme], "443"), 10, 16)
	return netip.AddrPortFrom(address, uint16(port)), err == nil
}
