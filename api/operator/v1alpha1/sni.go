package v1alpha1

import "strings"

// MatchesDomainPattern returns whether a kube-apiserver presents the certificate for a pattern, such as *.example.com, to clients that ask for a host.
// A star is for one label.
func MatchesDomainPattern(pattern, host string) bool {
	parent, wildcard := strings.CutPrefix(pattern, "*.")
	if !wildcard {
		return pattern == host
	}
	_, rest, _ := strings.Cut(host, ".")
	return rest == parent
}
