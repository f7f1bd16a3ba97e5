package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// DefaultExpirationSeconds is how long requested credentials are valid if the request has no expirationSeconds.
const DefaultExpirationSeconds int64 = 3600

// addDefaultingFuncs registers the defaults of all kinds in this package.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&AdminKubeconfigRequest{}, func(obj any) {
		setExpiration(&obj.(*AdminKubeconfigRequest).Spec.ExpirationSeconds)
	})
	scheme.AddTypeDefaultingFunc(&ViewerKubeconfigRequest{}, func(obj any) {
		setExpiration(&obj.(*ViewerKubeconfigRequest).Spec.ExpirationSeconds)
	})
	return nil
}

func setExpiration(seconds **int64) {
	if *seconds == nil {
		*seconds = new(DefaultExpirationSeconds)
	}
}
