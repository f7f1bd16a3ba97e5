package nodelocaldns

import (
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/systemcomponent"
)

const (
	// CustomManagedResourceName is the name of the ManagedResource with the server blocks of users.
	CustomManagedResourceName = "shoot-core-node-local-dns-custom"

	customName, customVolume = "node-local-dns-custom", "custom"
	// serverSuffix is the suffix of keys with server blocks.
	serverSuffix = ".server"
	// clusterPort is the port of the cluster's DNS server, for which users write server blocks. The cache has port 53.
	clusterPort = "8053"
	// maxCustom is how long all server blocks may be together, as the ManagedResource has to fit in a Secret. More are left out.
	maxCustom = 256 << 10
)

// errBraces says that a value is not a list of server blocks.
var errBraces = errors.New("braces do not open and close server blocks")

// CustomObjects renders the ConfigMap that the cache imports, with the server blocks of the ConfigMap coredns-custom, given its data. CoreDNS
// reloads it by itself. Values that are no server blocks are left out: the cluster's DNS server would not start with them either.
func CustomObjects(v Values, custom map[string]string) []client.Object {
	data, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(custom)) {
		if !strings.HasSuffix(key, serverSuffix) {
			continue
		}
		servers, err := adapt(custom[key], v.listen())
		if size += len(servers); err == nil && servers != "" && size <= maxCustom {
			data[key] = servers
		}
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: customName, Labels: systemcomponent.Labels()}, Data: data,
	}}
}

// adapt makes server blocks that are written for the cluster's DNS server ones of the cache: at its port, and with the directive for its addresses. The cache
// is in the network of the node, whose other addresses it must not serve. Server blocks of zones that the cache has itself are left out. In a Corefile,
// a line ends with the brace that opens a block, and the brace that closes it has a line of its own.
func adapt(servers, listen string) (string, error) {
	var out strings.Builder
	depth, keep := 0, false
	var header []string // the words before the brace of a server block
	for line := range strings.Lines(servers) {
		words := strings.Fields(line)
		if comment := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "#") }); comment >= 0 {
			words = words[:comment]
		}
		if len(words) == 0 {
			continue
		}
		opens, closes := words[len(words)-1] == "{", words[0] == "}"
		if closes && len(words) > 1 {
			return "", errBraces
		}
		switch {
		case depth == 0 && closes:
			return "", errBraces
		case depth == 0 && opens:
			header = append(header, words[:len(words)-1]...)
			keys, isSnippet := serverKeys(header)
			header, keep = nil, len(keys) > 0
			if keep {
				out.WriteString(strings.Join(keys, " ") + " {\n")
				if !isSnippet {
					out.WriteString("    " + listen + "\n")
				}
			}
		case depth == 0:
			header = append(header, words...)
		case keep:
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
		if opens {
			depth++
		} else if closes {
			depth--
		}
	}
	if depth != 0 || len(header) > 0 {
		return "", errBraces
	}
	return out.String(), nil
}

// serverKeys returns the zones of a server block with the port of the cache, without those that the cache has itself. A snippet, which server
// blocks import, has a name in parentheses.
func serverKeys(words []string) (keys []string, isSnippet bool) {
	if len(words) == 1 && strings.HasPrefix(words[0], "(") {
		return words, true
	}
	for _, word := range words {
		key := strings.TrimSuffix(word, ",")
		zone, isCluster := strings.CutSuffix(key, ":"+clusterPort)
		if isCluster {
			key = zone + ":53"
		}
		zone = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(key, "dns://"), ":53"), ".")
		if key != "" && !slices.Contains([]string{"", systemcomponent.Domain, "in-addr.arpa", "ip6.arpa"}, zone) {
			keys = append(keys, key)
		}
	}
	return keys, false
}
