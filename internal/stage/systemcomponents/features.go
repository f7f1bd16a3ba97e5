package systemcomponents

import "k8s.io/component-base/featuregate"

// IstioTLSTermination is the feature gate with which gateways end the TLS connections of kube-apiservers of shoots, and spread the requests of each
// connection over the pods. Without it, a connection is passed through to one pod. Owners of Shoots can disable it. The original has it as
// beta, for the virtual garden too; here it is alpha, and off. Source: nodes-and-autoscaling.md section 4.5.
const IstioTLSTermination featuregate.Feature = "IstioTLSTermination"

// Features are the feature gates of processes that deploy the components.
func Features() map[featuregate.Feature]featuregate.FeatureSpec {
	return map[featuregate.Feature]featuregate.FeatureSpec{IstioTLSTermination: {Default: false, PreRelease: featuregate.Alpha}}
}

// WithoutEffect are feature gates of the original's gardenlet and gardener-operator that change nothing here, and whether what they are for is the
// case. Source: constants.yaml, "featureGates".
func WithoutEffect() map[featuregate.Feature]bool {
	return map[featuregate.Feature]bool{
		"BackupEntryForGarden":          true,
		"CustomDNSServerInNodeLocalDNS": true,
		"DefaultSeccompProfile":         true, // the pods that Gardener deploys have RuntimeDefault
		"DisableNginxIngressInGarden":   true,
		"DisableNginxIngressInSeed":     true,
		"DoNotCopyBackupCredentials":    true,
		"OpenTelemetryCollector":        false,
		"PrometheusHealthChecks":        false,
		"RemoveHTTPProxyLegacyPort":     true,
		"RemoveVali":                    true,
		"VPNBondingModeRoundRobin":      false,
		"VictoriaLogsBackend":           false,
	}
}
