package shootsystem

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

const (
	// dnsPodPort is the port of DNS servers without privileges.
	dnsPort, dnsPodPort, kubeletPort, httpsPort = 53, 8053, 10250, 443

	policyPrefix = "gardener.cloud--allow-"
	keyApp       = "k8s-app"
)

// policies allow connections of pods in kube-system by their labels. Pods without such labels are not isolated.
func policies() []client.Object {
	dnsPods := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: keyApp, Operator: metav1.LabelSelectorOpIn, Values: []string{"kube-dns", "node-local-dns"},
	}}}
	tunnelPods := metav1.LabelSelector{MatchLabels: map[string]string{
		constants.App: "vpn-shoot", constants.GardenRole: constants.GardenRoleSystemComponent,
	}}
	everywhere := func(cidr ...string) []networkingv1.NetworkPolicyPeer {
		var peers []networkingv1.NetworkPolicyPeer
		for _, c := range cidr {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: c}})
		}
		return peers
	}
	udp, tcp := corev1.ProtocolUDP, corev1.ProtocolTCP
	dnsPorts := []networkingv1.NetworkPolicyPort{port(udp, dnsPort), port(tcp, dnsPort), port(udp, dnsPodPort), port(tcp, dnsPodPort)}
	return []client.Object{
		policy("dns", "Allows queries of all pods to DNS servers, and of DNS servers to upstream servers.", dnsPods,
			[]networkingv1.NetworkPolicyIngressRule{{Ports: dnsPorts}},
			// Node-local DNS asks the pods of the cluster's DNS server.
			[]networkingv1.NetworkPolicyEgressRule{{Ports: dnsPorts}}),
		policy("from-seed", "Allows connections from the control plane through the tunnel.", allowed(constants.NetworkPolicyShootFromSeed),
			[]networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &tunnelPods}}}}, nil),
		policy("to-dns", "Allows DNS queries.", allowed(constants.NetworkPolicyToDNS), nil, []networkingv1.NetworkPolicyEgressRule{
			{
				To:    []networkingv1.NetworkPolicyPeer{{PodSelector: dnsPods.DeepCopy()}},
				Ports: dnsPorts,
			},
			// Node-local DNS has an address of the node, and some pods use the resolvers of the node.
			{To: everywhere("0.0.0.0/0", "::/0"), Ports: []networkingv1.NetworkPolicyPort{port(udp, dnsPort), port(tcp, dnsPort)}},
		}),
		policy("to-apiserver", "Allows connections to the API server.", allowed(constants.NetworkPolicyShootToAPIServer), nil,
			[]networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{port(tcp, httpsPort)}}}),
		policy("to-kubelet", "Allows connections to kubelets.", allowed(constants.NetworkPolicyShootToKubelet), nil,
			[]networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{port(tcp, kubeletPort)}}}),
		policy("to-public-networks", "Allows connections to public networks.", allowed(constants.NetworkPolicyToPublicNetworks), nil,
			[]networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"}}},
				{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fc00::/7", "fe80::/10"}}},
			}}}),
	}
}

func allowed(label string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{label: constants.NetworkPolicyAllowed}}
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

func policy(
	name, description string, pods metav1.LabelSelector, ingress []networkingv1.NetworkPolicyIngressRule, egress []networkingv1.NetworkPolicyEgressRule,
) client.Object {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: policyPrefix + name, Annotations: map[string]string{constants.GardenerDescription: description},
		},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: pods, Ingress: ingress, Egress: egress},
	}
	if ingress != nil {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
	}
	if egress != nil {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	return p
}
