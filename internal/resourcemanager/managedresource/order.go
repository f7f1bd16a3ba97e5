package managedresource

import (
	"cmp"
	"slices"
)

// ranks are the order in which kinds are applied, as later ones may need earlier ones. They are deleted in the reverse order. Kinds that are
// not listed have the rank of workloads.
var ranks = map[string]int{
	"Namespace":                1,
	"CustomResourceDefinition": 2,
	"PriorityClass":            2,
	"StorageClass":             2,
	"RuntimeClass":             2,
	"IngressClass":             2,
	"GatewayClass":             2,
	"ServiceAccount":           3,
	"Secret":                   3,
	"ConfigMap":                3,
	"ResourceQuota":            3,
	"LimitRange":               3,
	"ClusterRole":              4,
	"Role":                     4,
	"ClusterRoleBinding":       5,
	"RoleBinding":              5,
	"NetworkPolicy":            5,
	"PersistentVolume":         5,
	"PersistentVolumeClaim":    5,
	"Service":                  6,
	// Requests fail while these have no ready server, so they are last.
	"APIService":                       9,
	"MutatingWebhookConfiguration":     9,
	"ValidatingWebhookConfiguration":   9,
	"ValidatingAdmissionPolicy":        9,
	"ValidatingAdmissionPolicyBinding": 9,
	"MutatingAdmissionPolicy":          9,
	"MutatingAdmissionPolicyBinding":   9,
}

const workloadRank = 7

func rank(kind string) int {
	if r, ok := ranks[kind]; ok {
		return r
	}
	return workloadRank
}

// inGroups groups items by rank, lowest first, and keeps the order within a group.
func inGroups[T any](items []T, kind func(T) string) [][]T {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(rank(kind(a)), rank(kind(b))) })
	var groups [][]T
	for i, item := range items {
		if i == 0 || rank(kind(items[i-1])) != rank(kind(item)) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], item)
	}
	return groups
}
