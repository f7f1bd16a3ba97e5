// Package features names the feature gates of gardener-apiserver.
package features

import (
	"maps"

	"k8s.io/component-base/featuregate"
)

const (
	// CloudProfileCapabilities allows machine capabilities in CloudProfiles: what machine types offer and images need.
	// Beta, on by default.
	CloudProfileCapabilities featuregate.Feature = "CloudProfileCapabilities"
	// DisableNginxIngressInShoot refuses the nginx ingress addon in shoots that do not have it yet. Alpha, off by default.
	DisableNginxIngressInShoot featuregate.Feature = "DisableNginxIngressInShoot"
	// InPlaceNodeUpdates allows worker pools whose nodes are updated without being replaced. Alpha, off by default.
	InPlaceNodeUpdates featuregate.Feature = "InPlaceNodeUpdates"
	// LiveControlPlaneMigration allows shoots to move to another seed while their API server answers. Alpha, off by default.
	LiveControlPlaneMigration featuregate.Feature = "LiveControlPlaneMigration"
	// VersionClassificationLifecycle allows lifecycles of versions in CloudProfiles: when which classification begins.
	// Alpha, off by default.
	VersionClassificationLifecycle featuregate.Feature = "VersionClassificationLifecycle"
)

// gates are the defaults. Source: constants.yaml, "featureGates".
var gates = map[featuregate.Feature]featuregate.FeatureSpec{
	CloudProfileCapabilities:       {Default: true, PreRelease: featuregate.Beta},
	DisableNginxIngressInShoot:     {Default: false, PreRelease: featuregate.Alpha},
	InPlaceNodeUpdates:             {Default: false, PreRelease: featuregate.Alpha},
	LiveControlPlaneMigration:      {Default: false, PreRelease: featuregate.Alpha},
	VersionClassificationLifecycle: {Default: false, PreRelease: featuregate.Alpha},
}

// AddTo makes our gates known to one that has those of the libraries, so that there is one flag for all. Adding them again, as
// tests do that start two servers, changes nothing.
func AddTo(gate featuregate.MutableFeatureGate) error {
	missing := maps.Clone(gates)
	for known := range gate.GetAll() {
		delete(missing, known)
	}
	if len(missing) == 0 {
		return nil
	}
	return gate.Add(missing)
}
