// Package systemcomponent has what system components in shoots have in common: the labels that webhooks and network policies select, and the
// ranges and addresses of the cluster's network.
package systemcomponent

import (
	"fmt"
	"net/netip"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// Domain is the domain of Services and pods.
	Domain = constants.DefaultDomain

	labelOrigin, originGardener = "origin", "gardener"
	// dnsNumber is the number of the DNS server's address in the range of Services.
	dnsNumber = 10
)

// Labels are on all objects of a component.
func Labels() map[string]string {
	return map[string]string{constants.GardenRole: constants.GardenRoleSystemComponent, labelOrigin: originGardener}
}

// PodLabels are those of the pods of a component. The policies are labels that allow traffic, such as constants.NetworkPolicyToDNS.
func PodLabels(policies ...string) map[string]string {
	labels := Labels()
	// Webhooks only assign pods with this label to nodes for system components.
	labels[resourcesv1alpha1.ManagedBy] = resourcesv1alpha1.GardenerManager
	for _, policy := range policies {
		labels[policy] = constants.NetworkPolicyAllowed
	}
	return labels
}

// Networks are the ranges of a cluster.
type Networks struct {
	// Pods and Services have one range per IP family; the first one is of the family that is preferred.
	Pods, Services []netip.Prefix
}

// NetworksOf reads the ranges of a Shoot: those in its status, as an infrastructure may have chosen some, or else those in its spec.
func NetworksOf(shoot *corev1beta1.Shoot) (Networks, error) {
	var pods, services []string
	if spec := shoot.Spec.Networking; spec != nil {
		if spec.Pods != nil {
			pods = []string{*spec.Pods}
		}
		if spec.Services != nil {
			services = []string{*spec.Services}
		}
	}
	if status := shoot.Status.Networking; status != nil {
		if len(status.Pods) > 0 {
			pods = status.Pods
		}
		if len(status.Services) > 0 {
			services = status.Services
		}
	}
	var n Networks
	for _, ranges := range []struct {
		name string
		from []string
		to   *[]netip.Prefix
	}{{"pods", pods, &n.Pods}, {"services", services, &n.Services}} {
		for _, text := range ranges.from {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return Networks{}, fmt.Errorf("network of %s: %w", ranges.name, err)
			}
			*ranges.to = append(*ranges.to, prefix.Masked())
		}
	}
	return n, nil
}

// PreferIPv6 says whether IPv6 is the preferred IP family.
func (n Networks) PreferIPv6() bool { return len(n.Services) > 0 && n.Services[0].Addr().Is6() }

// KubernetesService returns the address of the Service "kubernetes", the first one of the first range of Services. It is not valid without a range.
func (n Networks) KubernetesService() netip.Addr {
	if len(n.Services) == 0 {
		return netip.Addr{}
	}
	return n.Services[0].Masked().Addr().Next()
}

// DNS returns the addresses of the cluster's DNS server, one per range of Services.
func (n Networks) DNS() []netip.Addr {
	addresses := make([]netip.Addr, 0, len(n.Services))
	for _, prefix := range n.Services {
		address := prefix.Masked().Addr()
		for range dnsNumber {
			address = address.Next()
		}
		addresses = append(addresses, address)
	}
	return addresses
}
