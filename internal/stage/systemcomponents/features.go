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
