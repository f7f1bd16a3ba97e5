// Package dnsname compares domains of Shoots with those that the landscape has credentials for.
package dnsname

import (
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Within reports whether a domain is another one or below it.
func Within(domain, other string) bool {
	return other != "" && (domain == other || strings.HasSuffix(domain, "."+other))
}

// Closest returns which of some domains another one is within: the longest, as one may be below another. It is empty if there is none.
func Closest(domain string, of []string) string {
	closest := ""
	for _, other := range of {
		if Within(domain, other) && len(other) > len(closest) {
			closest = other
		}
	}
	return closest
}

// Of returns the domain of a Shoot's spec.dns. It is empty if there is none.
func Of(dns *corev1beta1.DNS) string {
	if dns == nil {
		return ""
	}
	return ptr.Deref(dns.Domain, "")
}

// Unmanaged reports whether the owner of the Shoot takes care of its records.
func Unmanaged(dns *corev1beta1.DNS) bool {
	return dns != nil && len(dns.Providers) == 1 && ptr.Deref(dns.Providers[0].Type, "") == constants.DNSProviderUnmanaged //nolint:staticcheck // providers are still used
}

// OfLandscape returns the domain of a Shoot if only the landscape can have credentials for its records, as the Shoot has no provider. It is
// empty if there is no such domain.
func OfLandscape(dns *corev1beta1.DNS) string {
	if dns == nil || len(dns.Providers) > 0 { //nolint:staticcheck // providers are still used
		return ""
	}
	return Of(dns)
}

// IsPrimary reports whether a provider is the one for the domain of the Shoot.
func IsPrimary(provider corev1beta1.DNSProvider) bool {
	return ptr.Deref(provider.Primary, false) //nolint:staticcheck // the primary provider is still used
}
