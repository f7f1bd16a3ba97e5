package v1beta1

import apiequality "k8s.io/apimachinery/pkg/api/equality"

// KubeletConfig returns the configuration for the kubelets of a pool: that of the pool, or else that of the Shoot. It may be nil.
//
// If the Shoot has no kubeReserved, the admission plugin ShootResourceReservation can set it in each pool by machine type. A pool that
// has nothing else has all other settings from the Shoot.
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

// reservesOnly reports whether a configuration has only kubeReserved. FailSwapOn is true by default.
func reservesOnly(config *KubeletConfig) bool {
	rest := *config
	rest.KubeReserved = nil
	if rest.FailSwapOn != nil && *rest.FailSwapOn {
		rest.FailSwapOn = nil
	}
	return config.KubeReserved != nil && apiequality.Semantic.DeepEqual(rest, KubeletConfig{})
}
