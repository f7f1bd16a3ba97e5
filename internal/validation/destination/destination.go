// Package destination checks hosts that users set and that processes of a control plane connect to, such as the issuer of an OpenID Connect
// provider or the server of a webhook. NetworkPolicies of the seed block what the control plane must not reach; these checks report early what
// would be blocked, or would be an address in the seed.
package destination

import (
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// metadata are the addresses of the metadata services of infrastructures that are not link-local.
var metadata = sets.New("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")

// Host returns why a control plane must not connect to a host, or "". The host is a name, or an IP address without brackets.
func Host(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		address = address.Unmap().WithZone("")
		switch {
		case address.IsLoopback(), address.IsUnspecified():
			return "must not be an address of the control plane itself"
		case address.IsLinkLocalUnicast(), address.IsMulticast(), metadata.Has(address.String()):
			return "must not be a link-local or multicast address, or one of a metadata service"
		}
		return ""
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	// Resolvers read "127.1", "0x7f.1" and "2852039166" as IPv4 addresses. No top-level domain begins with a digit.
	case last == "" || last[0] >= '0' && last[0] <= '9':
		return "must be a DNS name, or an IP address in its usual form"
	case last == "localhost":
		return "must not be an address of the control plane itself"
	// A resolver in a pod tries its search domains with short names, too, so that kube-apiserver.shoot--dev--first is a Service.
	case len(labels) == 1, last == "svc", strings.HasSuffix(host, ".cluster.local"), strings.Contains(last, "--") && !strings.HasPrefix(last, "xn--"):
		return "must not be a name of a Service in the seed"
	case host == "metadata.google.internal":
		return "must not be the name of a metadata service"
	}
	return ""
}

// URL checks the host of a URL. What is no URL with a host has no error here. Errors have no values, as the URL may be of a kubeconfig.
func URL(raw string, path *field.Path) field.ErrorList { return URLOf(raw, path, Host) }

// URLOf is URL with another function than Host, which returns why a host is blocked, or "".
func URLOf(raw string, path *field.Path, blocked func(host string) string) field.ErrorList {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Hostname() == "" {
		return nil
	}
	if reason := blocked(parsed.Hostname()); reason != "" {
		return field.ErrorList{field.Forbidden(path, "the host "+reason)}
	}
	return nil
}
