// Package shootnetworkpolicies lets system components in the kube-system of a shoot talk to whom they say in their labels.
//
// Nothing is denied: that is up to the owner of the shoot. These policies see to it that system components go on working if the owner
// denies what is not allowed.
package shootnetworkpolicies

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/systemcomponent"
)

const (
	kubeletPort, apiServerPort, dnsPort int32 = 10250, 443, 53

	prefix = "gardener.cloud--allow-"
	// tunnel is the value of the label app of the pods by which the control plane reaches the shoot.
	tunnel = "vpn-shoot"
)

// Objects renders the policies.
func Objects() []client.Object {
	return []client.Object{
		egress("to-apiserver", "Lets pods with the label talk to port 443 of any address, such as the API server's.",
			labelled(constants.NetworkPolicyShootToAPIServer), networkingv1.NetworkPolicyEgressRule{Ports: tcp(apiServerPort)}),
		egress("to-dns", "Lets pods with the label ask the DNS servers of the cluster and the resolver of their node.",
			labelled(constants.NetworkPolicyToDNS), dns()...),
		egress("to-kubelet", "Lets pods with the label talk to kubelets.",
			labelled(constants.NetworkPolicyShootToKubelet), networkingv1.NetworkPolicyEgressRule{Ports: tcp(kubeletPort)}),
		egress("to-public-networks", "Lets pods with the label talk to anybody.",
			labelled(constants.NetworkPolicyToPublicNetworks), networkingv1.NetworkPolicyEgressRule{To: anywhere()}),
		ingress("from-seed", "Lets the control plane talk to pods with the label, through the tunnel.",
			labelled(constants.NetworkPolicyShootFromSeed), networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{constants.App: tunnel}},
			}}}),
		egress("vpn", "Lets the tunnel connect to the control plane, and the control plane to everything in the cluster.",
			metav1.LabelSelector{MatchLabels: map[string]string{constants.App: tunnel}}, networkingv1.NetworkPolicyEgressRule{}),
	}
}

// dns has the pods of the DNS server, and every address: that of its Service, of the caches on nodes, and of the resolvers of nodes.
// Depending on the network, a policy is asked before or after the address of a Service has become that of a pod.
func dns() []networkingv1.NetworkPolicyEgressRule {
	rule := func(port int32, peers ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: peers, Ports: []networkingv1.NetworkPolicyPort{
			{Protocol: ptr.To(corev1.ProtocolUDP), Port: ptr.To(intstr.FromInt32(port))},
			{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))},
		}}
	}
	pods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{coredns.LabelKey: coredns.LabelValue}}}
	return []networkingv1.NetworkPolicyEgressRule{rule(coredns.Port, pods), rule(dnsPort, anywhere()...)}
}

func anywhere() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}}}
}

func labelled(label string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{label: constants.NetworkPolicyAllowed}}
}

func tcp(port int32) []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))}}
}

func egress(name, what string, pods metav1.LabelSelector, rules ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return policy(name, what, networkingv1.NetworkPolicySpec{
		PodSelector: pods, Egress: rules, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	})
}

func ingress(name, what string, pods metav1.LabelSelector, rules ...networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	return policy(name, what, networkingv1.NetworkPolicySpec{
		PodSelector: pods, Ingress: rules, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	})
}

func policy(name, what string, spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: prefix + name, Labels: systemcomponent.Labels(),
			Annotations: map[string]string{constants.GardenerDescription: what},
		},
		Spec: spec,
	}
}
