package gardenctl

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The address of a bastion becomes part of the configuration of ssh, where a line break could add a command.
func TestHostOf(t *testing.T) {
	for name, tc := range map[string]struct {
		ingress corev1.LoadBalancerIngress
		want    string
		refused bool
	}{
		"an address":               {ingress: corev1.LoadBalancerIngress{IP: "198.51.100.1"}, want: "198.51.100.1"},
		"an IPv6 address":          {ingress: corev1.LoadBalancerIngress{IP: "2001:DB8::1"}, want: "2001:db8::1"},
		"a name":                   {ingress: corev1.LoadBalancerIngress{Hostname: "a.example.com"}, want: "a.example.com"},
		"nothing":                  {refused: true},
		"more than a name":         {ingress: corev1.LoadBalancerIngress{Hostname: "a\n  ProxyCommand reboot"}, refused: true},
		"more than an address":     {ingress: corev1.LoadBalancerIngress{IP: "198.51.100.1\n  ProxyCommand reboot"}, refused: true},
		"a name that is an option": {ingress: corev1.LoadBalancerIngress{Hostname: "-oProxyCommand=reboot"}, refused: true},
		"a bad address and a name": {ingress: corev1.LoadBalancerIngress{IP: "none", Hostname: "a.example.com"}, want: "a.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hostOf(&tc.ingress)
			if got != tc.want || (err != nil) != tc.refused {
				t.Errorf("hostOf() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestInternalAddress(t *testing.T) {
	node := &corev1.Node{}
	node.Name = "a"
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "a"},
		{Type: corev1.NodeInternalIP, Address: "none\nProxyCommand reboot"},
		{Type: corev1.NodeExternalIP, Address: "203.0.113.7"},
	}
	if got, err := internalAddress(node); err == nil {
		t.Errorf("a node without an internal address has %q", got)
	}
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.250.0.4"})
	if got, err := internalAddress(node); got != "10.250.0.4" || err != nil {
		t.Errorf("the address is %q, %v", got, err)
	}
}

func TestIngressOf(t *testing.T) {
	policies, err := ingressOf(t.Context(), []string{"203.0.113.7/24", "2001:db8::1/128"}, "")
	if err != nil || len(policies) != 2 || policies[0].IPBlock.CIDR != "203.0.113.0/24" || policies[1].IPBlock.CIDR != "2001:db8::1/128" {
		t.Errorf("networks are %v, %v", policies, err)
	}
	for _, garden := range []string{"https://127.0.0.1:6443", "https://[::1]", "%"} {
		if policies, err := ingressOf(t.Context(), nil, garden); err == nil || !strings.Contains(err.Error(), "--cidr") {
			t.Errorf("without a public address, for %s: %v, %v", garden, policies, err)
		}
	}
}

// The error says what to write, also on a landscape, where there are only private addresses.
func TestPublic(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.9": "", "2001:db8::9": "",
		"172.30.0.1": "--cidr=172.30.0.1/32 if the bastion is in the same network", "fd00::1": "--cidr=fd00::1/128 if", "127.0.0.1": "--cidr=203.0.113.7/32",
	} {
		if err := public(netip.MustParseAddr(address)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
