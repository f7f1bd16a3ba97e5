package observed

import (
	"slices"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/pkg/extension"
)

// PendingUpdates returns the pools whose nodes are to be updated in place: those whose machines are not as in the Shoot, as far as the extension has reported
// them in the status of the Worker. A pool of which nothing is reported is a new one, unless it was pending before: then, its machines are being updated. Nor is
// one whose machines are restored, as the control plane has come from another seed: they are not known to be updated yet. It returns nil if there are none.
func PendingUpdates(
	shoot *corev1beta1.Shoot, reported *extensionsv1alpha1.InPlaceUpdatesWorkerStatus, restored bool,
) (*corev1beta1.InPlaceUpdatesStatus, error) {
	var hashes map[string]string
	if reported != nil {
		hashes = reported.WorkerPoolToHashMap
	}
	pending := corev1beta1.PendingWorkerUpdates{}
	for i := range shoot.Spec.Provider.Workers {
		pool := &shoot.Spec.Provider.Workers[i]
		before, image := hashes[pool.Name], ""
		if !pool.UpdateStrategy.InPlace() || before == "" && !restored && !shoot.Status.UpdatesPending(pool.Name) {
			continue
		}
		if pool.Machine.Image != nil {
			image = ptr.Deref(pool.Machine.Image.Version, "")
		}
		kubernetes := shoot.Spec.Kubernetes
		now, err := extension.InPlaceHashes(pool.Name, operatingsystemconfig.KubernetesVersion(pool, kubernetes.Version), image,
			pool.KubeletConfig(kubernetes.Kubelet), shoot.Status.Credentials)
		if err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(now, before):
		case *pool.UpdateStrategy == corev1beta1.ManualInPlaceUpdate:
			pending.ManualInPlaceUpdate = append(pending.ManualInPlaceUpdate, pool.Name)
		default:
			pending.AutoInPlaceUpdate = append(pending.AutoInPlaceUpdate, pool.Name)
		}
	}
	if len(pending.AutoInPlaceUpdate)+len(pending.ManualInPlaceUpdate) == 0 {
		return nil, nil
	}
	return &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &pending}, nil
}
