package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
)

// serverName is the name of the container with the kube-apiserver.
var serverName = instance.VirtualGarden.Name(kubeapiserver.Name)

// formerVersion returns the version of Kubernetes that a changed Garden must not go back behind, and may be one minor version later than. It is that of the old
// Garden, unless none of the pods of kube-apiserver has started with it, such as because there is no such image: then etcd has nothing that this version has
// written. If the new version is the one that runs, that is returned, so that it is accepted; if none has ever run, "", with which any is.
func (h *Validator) formerVersion(ctx context.Context, garden, old *operatorv1alpha1.Garden) (string, error) {
	after, before := garden.Spec.VirtualCluster.Kubernetes.Version, old.Spec.VirtualCluster.Kubernetes.Version
	if after == before {
		return before, nil
	}
	imageAfter, errAfter := h.Images.Find(kubeapiserver.Name, imagevector.Query{TargetVersion: after})
	imageBefore, errBefore := h.Images.Find(kubeapiserver.Name, imagevector.Query{TargetVersion: before})
	if errAfter != nil || errBefore != nil || imageAfter.String() == imageBefore.String() {
		return before, nil // pods do not say which of both they run
	}
	pods := &corev1.PodList{}
	if err := h.Reader.List(ctx, pods, client.InNamespace(constants.GardenNamespace), client.MatchingLabels(kubeapiserver.Labels())); err != nil {
		return "", fmt.Errorf("list pods of kube-apiserver: %w", err)
	}
	runs := false
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !hasStarted(pod) {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == serverName && c.Image == imageAfter.String() }) {
			return before, nil
		}
		runs = true
	}
	switch reconciled := old.Status.Credentials != nil && old.Status.Credentials.EncryptionAtRest != nil; {
	case runs:
		return after, nil
	case reconciled: // its pods are gone for another reason
		return before, nil
	}
	return "", nil
}

// hasStarted is whether the kube-apiserver in a pod has ever started.
func hasStarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == serverName &&
			(s.RestartCount > 0 || s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil)
	})
}

// versionWarnings warns of a version of Kubernetes that is none of those that the image vector lists, if it lists some, as that of `distribution push` does:
// its images may not exist.
func (h *Validator) versionWarnings(garden *operatorv1alpha1.Garden) []string {
	version, listed := garden.Spec.VirtualCluster.Kubernetes.Version, imagevector.Vector{}
	var versions []string
	for _, source := range h.Images {
		if source.Name == kubeapiserver.Name && source.TargetVersion != nil {
			listed, versions = append(listed, source), append(versions, ptr.Deref(source.TargetVersion, ""))
		}
	}
	if len(listed) == 0 {
		return nil
	}
	query := imagevector.Query{TargetVersion: version}
	if _, err := listed.Find(kubeapiserver.Name, query); err == nil {
		return nil
	}
	image, err := h.Images.Find(kubeapiserver.Name, query)
	if err != nil {
		return nil // another check refuses the version
	}
	slices.Sort(versions)
	return []string{fmt.Sprintf("spec.virtualCluster.kubernetes.version: the image vector of gardener-operator has images for %s, and not for %s: %s must exist, or kube-apiserver does not start",
		strings.Join(slices.Compact(versions), ", "), version, image)}
}
