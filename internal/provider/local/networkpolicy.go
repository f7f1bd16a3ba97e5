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
// the address of the seed's gateway.
func networksOf(seed *corev1beta1.Seed, state *infrastructureState, inSeed bool) general.Networks {
	networks := general.Networks{Own: state.Nodes, Blocked: seed.Spec.Networks.BlockCIDRs}
	if inSeed {
		networks.Own = append([]string{seed.Spec.Networks.Pods, seed.Spec.Networks.Services}, state.Nodes...)
		if nodes := seed.Spec.Networks.Nodes; nodes != nil {
			networks.Own = append(networks.Own, *nodes)
		}
	}
	return networks
}

// MachinesPolicy returns the policy for all pods of a namespace with machines, so that it is for those of former versions, too. Everything on a machine is
// the owner's of the shoot: it reaches the other machines of the shoot, with which it exchanges what its pods send to each other, DNS, gateways to control
// planes, registries and what is outside of the cluster. Other machines of the shoot alone reach it, as the control plane does through the tunnel that a
// machine has opened.
func MachinesPolicy(namespace string, networks general.Networks, registries []localv1alpha1.MachineRegistry) *networkingv1.NetworkPolicy {
	machines := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	gateways := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{constants.GardenRole: constants.GardenRoleIstioIngress},
	}}
	egress := []networkingv1.NetworkPolicyEgressRule{{To: machines}, general.ToDNS(), {To: []networkingv1.NetworkPolicyPeer{gateways}}}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machinesPolicyName, Annotations: map[string]string{
			constants.GardenerDescription: "Keeps machines of a shoot from other shoots, from the cluster that they run in, and from metadata services.",
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: machines}},
			Egress:      slices.Concat(egress, toRegistries(registries), general.ToWorld(networks)),
		},
	}
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
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(int32(server.Port())))}},
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
