// Package destination checks hosts that users set and that processes in a seed connect to, such as the issuer of an OpenID Connect
// provider, the server of a webhook or a name server. NetworkPolicies of the seed block what the control plane must not reach; these checks report early what
// would be blocked, or would be an address in the seed.
package destination

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Metadata are the networks of the metadata services of infrastructures that are not link-local. They give credentials of the seed's nodes to any pod
// that connects to them.
var Metadata = []string{
	"fd00:ec2::/32",      // AWS: fd00:ec2::254
	"fd20:ce::254/128",   // Google Cloud
	"100.100.100.200/32", // Alibaba Cloud
	"168.63.129.16/32",   // Azure
	"192.0.0.192/32",     // Oracle Cloud
}

var metadata = prefixes(Metadata)

// prefixes parses networks. Those that cannot be parsed contain no address.
func prefixes(networks []string) (parsed []netip.Prefix) {
	for _, network := range networks {
		if prefix, err := netip.ParsePrefix(network); err == nil {
			parsed = append(parsed, prefix)
		}
	}
	return parsed
}

// embedding are networks whose addresses have an IPv4 address in them to which a gateway may translate, and the byte where that begins.
var embedding = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 of a network, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4, RFC 3056
}

// Translated returns the networks of IPv6 addresses to which a gateway may give the addresses of IPv4 networks: for NAT64 and 6to4, which policies have
// to name beside the IPv4 network. What is no IPv4 network has none. Of networks with a NAT64 prefix of their own, it is 64:ff9b:1::/96.
func Translated(networks []string) []string {
	var translated []string
	for _, network := range prefixes(networks) {
		if !network.Addr().Is4() {
			continue
		}
		ipv4 := network.Addr().As4()
		for _, e := range embedding {
			address := e.network.Addr().As16()
			copy(address[e.at:], ipv4[:])
			translated = append(translated, netip.PrefixFrom(netip.AddrFrom16(address), e.at*8+network.Bits()).Masked().String())
		}
	}
	return translated
}

// plain returns an address without its zone, and as IPv4 address if it leads to one.
func plain(address netip.Addr) netip.Addr {
	address = unmapped(address)
	for _, e := range embedding {
		if e.network.Contains(address) {
			all := address.As16()
			return netip.AddrFrom4([4]byte(all[e.at : e.at+4]))
		}
	}
	return address
}

func unmapped(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

func contain(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Host returns why a control plane must not connect to a host, or "". The host is a name, or an IP address without brackets.
func Host(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		address = plain(address)
		switch {
		case address.IsLoopback(), address.IsUnspecified():
			return "must not be an address of the control plane itself"
		case address.IsLinkLocalUnicast(), address.IsMulticast(), contain(metadata, address):
			return "must not be a link-local or multicast address, or one of a metadata service"
		}
		return ""
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	// Clients convert others, such as a full-width "svc", to ASCII before they resolve them.
	case strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }):
		return "must be a DNS name in ASCII"
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

// Outside returns Host that also returns why not to connect to an address in some networks, such as those of the pods of a seed. It is for a Dialer, which
// knows the addresses of names.
func Outside(networks ...string) func(host string) string {
	own := prefixes(networks)
	return func(host string) string {
		if address, err := netip.ParseAddr(host); err == nil && (contain(own, unmapped(address)) || contain(own, plain(address))) {
			return "must not be an address in the seed"
		}
		return Host(host)
	}
}

// private are networks that are not part of the internet.
var private = prefixes([]string{
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
	"100.64.0.0/10",             // RFC 6598
	"0.0.0.0/8", "192.0.0.0/24", // RFC 6890
	"198.18.0.0/15",            // RFC 2544
	"240.0.0.0/4",              // RFC 1112
	"fc00::/7",                 // RFC 4193
	"fec0::/10",                // RFC 3879
	"2001:2::/48", "5f00::/16", // RFC 5180, RFC 9602
})

// Public returns Host that also returns why not to connect to an address of a private network, but for those in allowed networks. It is for a Dialer,
// which knows the addresses of names.
func Public(allowed ...string) func(host string) string {
	exceptions := prefixes(allowed)
	return func(host string) string {
		if reason := Host(host); reason != "" {
			return reason
		}
		address, err := netip.ParseAddr(host)
		if err != nil {
			return ""
		}
		own, leadsTo := unmapped(address), plain(address)
		if (contain(private, own) || contain(private, leadsTo)) && !contain(exceptions, own) && !contain(exceptions, leadsTo) {
			return "must not be an address of a private network"
		}
		return ""
	}
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
