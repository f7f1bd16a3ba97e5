package v1beta1

import apiequality "k8s.io/apimachinery/pkg/api/equality"

// KubeletConfig is what kubelets of a pool get: the pool's configuration, or that of the Shoot. It may be nil.
//
// The admission plugin ShootResourceReservation can write into each pool what is reserved by machine type, if the Shoot does not say it.
// Nobody else said anything about such a pool, so it has all the rest from the Shoot.
func (w *Worker) KubeletConfig(shoot *KubeletConfig) *KubeletConfig {
	if w.Kubernetes == nil || w.Kubernetes.Kubelet == nil {
		return shoot
	}
	own := w.Kubernetes.Kubelet
	if shoot == nil || shoot.KubeReserved != nil || !reservesOnly(own) {
		return own
	}
	merged := shoot.DeepCopy()
	merged.KubeReserved = own.KubeReserved
	return merged
}

// reservesOnly tells whether a configuration says nothing but what is reserved. FailSwapOn is true by default.
func reservesOnly(config *KubeletConfig) bool {
	rest := *config
	rest.KubeReserved = nil
	if rest.FailSwapOn != nil && *rest.FailSwapOn {
		rest.FailSwapOn = nil
	}
	return config.KubeReserved != nil && apiequality.Semantic.DeepEqual(rest, KubeletConfig{})
}
