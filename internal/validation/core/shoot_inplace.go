package core

import (
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// inPlacePoolUpdate checks changes of a pool that is updated in place. Its machines stay, so what only new machines get cannot change.
func inPlacePoolUpdate(spec, beforeSpec *corev1beta1.ShootSpec, worker, before *corev1beta1.Worker, path *field.Path) field.ErrorList {
	if !worker.UpdateStrategy.InPlace() || !before.UpdateStrategy.InPlace() {
		return nil
	}
	var errs field.ErrorList
	image, imageBefore := ptr.Deref(worker.Machine.Image, corev1beta1.ShootMachineImage{}), ptr.Deref(before.Machine.Image, corev1beta1.ShootMachineImage{})
	cri, criBefore := ptr.Deref(worker.CRI, corev1beta1.CRI{}), ptr.Deref(before.CRI, corev1beta1.CRI{})
	for _, f := range []struct {
		path         *field.Path
		value, other any
	}{
		{path.Child("machine", "type"), worker.Machine.Type, before.Machine.Type},
		{path.Child("machine", "image", "name"), image.Name, imageBefore.Name},
		{path.Child("cri", "name"), cri.Name, criBefore.Name},
		{path.Child("volume"), worker.Volume, before.Volume},
		{path.Child("dataVolumes"), worker.DataVolumes, before.DataVolumes},
		{path.Child("kubeletDataVolumeName"), worker.KubeletDataVolumeName, before.KubeletDataVolumeName},
	} {
		if !apiequality.Semantic.DeepEqual(f.value, f.other) {
			errs = append(errs, field.Forbidden(f.path, "cannot be changed in a pool whose nodes are updated in place"))
		}
	}
	if now, then := parseVersion(ptr.Deref(image.Version, "")), parseVersion(ptr.Deref(imageBefore.Version, "")); now.Version != nil && then.Version != nil && now.LessThan(then.Version) {
		errs = append(errs, field.Forbidden(path.Child("machine", "image", "version"), "cannot be lowered in a pool whose nodes are updated in place"))
	}
	if now, then := parseVersion(poolVersion(worker, spec)), parseVersion(poolVersion(before, beforeSpec)); now.Version != nil && then.Version != nil && now.Minor() > then.Minor()+1 {
		errs = append(errs, field.Forbidden(path.Child("kubernetes", "version"), "minor versions cannot be skipped in a pool whose nodes are updated in place"))
	}
	return errs
}

// inPlaceDNSUpdate checks that the DNS cache of nodes does not change while pods stay on nodes that have the address of another DNS server.
func inPlaceDNSUpdate(spec, before *corev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	cache := func(s *corev1beta1.ShootSpec) bool {
		return s.SystemComponents != nil && s.SystemComponents.NodeLocalDNS != nil && s.SystemComponents.NodeLocalDNS.Enabled
	}
	if cache(spec) == cache(before) {
		return nil
	}
	for i := range spec.Provider.Workers {
		if spec.Provider.Workers[i].UpdateStrategy.InPlace() {
			return field.ErrorList{field.Forbidden(path.Child("systemComponents", "nodeLocalDNS", "enabled"), "cannot be changed while nodes of a worker pool are updated in place")}
		}
	}
	return nil
}

// pendingUpdates refuses changes of pools whose nodes are not yet as in the last change, unless the user forces them.
func pendingUpdates(shoot, old *corev1beta1.Shoot, path *field.Path) field.ErrorList {
	if shoot.Annotations[constants.GardenerOperation] == constants.ShootOperationForceInPlaceUpdate {
		return nil
	}
	var errs field.ErrorList
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		for j := range old.Spec.Provider.Workers {
			before := &old.Spec.Provider.Workers[j]
			if before.Name != worker.Name || !old.Status.UpdatesPending(worker.Name) || sameNodes(&shoot.Spec, &old.Spec, worker, before) {
				continue
			}
			errs = append(errs, field.Forbidden(path.Index(i), "nodes of the pool are still being updated in place; to change it nevertheless, annotate the Shoot with "+
				constants.GardenerOperation+"="+constants.ShootOperationForceInPlaceUpdate))
		}
	}
	return errs
}

// sameNodes reports whether nodes of a pool need no other update than before.
func sameNodes(spec, beforeSpec *corev1beta1.ShootSpec, worker, before *corev1beta1.Worker) bool {
	same := apiequality.Semantic.DeepEqual
	return poolVersion(worker, spec) == poolVersion(before, beforeSpec) && same(worker.Machine, before.Machine) && same(worker.CRI, before.CRI) &&
		same(worker.ProviderConfig, before.ProviderConfig) && same(worker.UpdateStrategy, before.UpdateStrategy) &&
		same(worker.KubeletConfig(spec.Kubernetes.Kubelet), before.KubeletConfig(beforeSpec.Kubernetes.Kubelet))
}

// waitsForUpdates reports whether an operation starts or completes a rotation of credentials that nodes get by an update in place.
func waitsForUpdates(operation string) bool {
	for _, prefix := range []string{"rotate-credentials-", "rotate-ca-", "rotate-serviceaccount-key-"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}
