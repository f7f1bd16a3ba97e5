package landscape

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"gardener.cloud/gardener/landscape/host"
)

// BypassProxy lets this process, and those it starts, reach landscapes without the proxy that the environment may name: their addresses are
// only valid on this computer. Mains call it before their first request, as Go reads the environment once. The arguments are os.Getenv
// and os.Setenv.
func BypassProxy(getenv func(string) string, setenv func(key, value string) error) error {
	// Programs differ in which of the two they read, and in which comes first.
	upper, lower := getenv("NO_PROXY"), getenv("no_proxy")
	return errors.Join(
		setenv("NO_PROXY", withNetwork(cmp.Or(upper, lower))),
		setenv("no_proxy", withNetwork(cmp.Or(lower, upper))),
	)
}

// ProxyAdvice is the command that a shell needs so that programs in it reach landscapes, empty if the environment names no proxy.
func ProxyAdvice(getenv func(string) string) string {
	for _, key := range []string{"HTTPS_PROXY", "https_proxy"} {
		if getenv(key) != "" {
			return "export NO_PROXY=" + withNetwork(cmp.Or(getenv("NO_PROXY"), getenv("no_proxy")))
		}
	}
	return ""
}

// withNetwork adds the network of all landscapes to a value of NO_PROXY.
func withNetwork(value string) string {
	network := host.Networks().String()
	if value == "" {
		return network
	}
	if slices.ContainsFunc(strings.Split(value, ","), func(entry string) bool {
		entry = strings.TrimSpace(entry)
		return entry == "*" || entry == network
	}) {
		return value
	}
	return value + "," + network
}
