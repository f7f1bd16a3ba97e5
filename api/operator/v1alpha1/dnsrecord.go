package v1alpha1

import "strings"

// DNSRecordName returns the name of the DNSRecord of a host, such as *.example.com, with a DNS provider of some type. Hosts that differ only in a dot and a
// hyphen have the same: validation refuses a Garden with both.
func DNSRecordName(host, providerType string) string {
	return strings.NewReplacer(".", "-", "*", "wildcard").Replace(host) + "-" + providerType
}
