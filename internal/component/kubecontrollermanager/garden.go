package kubecontrollermanager

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// notInGarden are the controllers that a virtual garden does not have, by the version from which on Kubernetes has them: it has no nodes, pods and
// volumes, and tokens of ServiceAccounts are requested. Endpoints are written by who knows them.
var notInGarden = map[string][]string{
	"": {
		"serviceaccount-token-controller", "persistentvolume-attach-detach-controller", "cloud-node-lifecycle-controller", "endpoints-controller",
		"ephemeral-volume-controller", "node-ipam-controller", "node-lifecycle-controller", "persistentvolume-binder-controller",
		"persistentvolume-expander-controller", "persistentvolume-protection-controller", "ttl-controller",
	},
	"1.33": {"device-taint-eviction-controller"},
	"1.34": {"podcertificaterequest-cleaner-controller"},
	"1.36": {"podgroup-protection-controller", "resourcepoolstatusrequest-controller"},
}

// ofAPIs are the controllers of APIs that a virtual garden serves only on request.
var ofAPIs = map[string][]string{
	"apps/v1":        {"daemonset-controller", "deployment-controller", "replicaset-controller", "statefulset-controller"},
	"autoscaling/v2": {"horizontal-pod-autoscaler-controller"},
	"batch/v1":       {"cronjob-controller", "job-controller", "ttl-after-finished-controller"},
	"policy/v1":      {"disruption-controller"},
}

// withoutInGarden returns the controllers that are disabled in a virtual garden.
func (v Values) withoutInGarden() ([]string, error) {
	parsed, err := version.ParseGeneric(v.Version)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes: %w", err)
	}
	var names []string
	for _, since := range slices.Sorted(maps.Keys(notInGarden)) {
		if since == "" || parsed.AtLeast(version.MustParseGeneric(since)) {
			names = append(names, notInGarden[since]...)
		}
	}
	for _, api := range slices.Sorted(maps.Keys(ofAPIs)) {
		if !v.APIs[api] {
			names = append(names, ofAPIs[api]...)
		}
	}
	return names, nil
}

// forGarden sets the flags for a cluster with many namespaces, and few other objects that kube-controller-manager is for.
func (v Values) forGarden(flags map[string]string) {
	flags["concurrent-gc-syncs"] = "250"
	flags["concurrent-namespace-syncs"], flags["concurrent-resource-quota-syncs"] = "100", "100"
	flags["resource-quota-sync-period"] = "1m0s"
	delete(flags, "concurrent-serviceaccount-token-syncs")
}
