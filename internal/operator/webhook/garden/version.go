package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
		runs = runs || !ends(pod) // one that was evicted long ago stays
	}
	switch reconciled := old.Status.Credentials != nil && old.Status.Credentials.EncryptionAtRest != nil; {
	case runs:
		return after, nil
	case reconciled: // its pods are gone for another reason
		return before, nil
	}
	return "", nil
}

// skipped refuses a version of Kubernetes that is more than one minor version later than one that still runs. The version before may never have run, such as one
// that was mistyped, so the check against that is not enough. Images whose version is not known do not count, nor pods that end.
func (h *Validator) skipped(ctx context.Context, garden, old *operatorv1alpha1.Garden) (field.ErrorList, error) {
	after := garden.Spec.VirtualCluster.Kubernetes.Version
	wanted, err := semver.NewVersion(after)
	if err != nil || after == old.Spec.VirtualCluster.Kubernetes.Version {
		return nil, nil //nolint:nilerr // another check refuses it
	}
	image, err := h.Images.Find(kubeapiserver.Name, imagevector.Query{TargetVersion: after})
	if err != nil {
		return nil, nil //nolint:nilerr // another check refuses it
	}
	pods := &corev1.PodList{}
	if err := h.Reader.List(ctx, pods, client.InNamespace(constants.GardenNamespace), client.MatchingLabels(kubeapiserver.Labels())); err != nil {
		return nil, fmt.Errorf("list pods of kube-apiserver: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if ends(pod) || !hasStarted(pod) {
			continue
		}
		for _, c := range pod.Spec.Containers {
			if c.Name != serverName || c.Image == image.String() {
				continue
			}
			if runs := h.versionOf(c.Image); runs != nil && (wanted.Major() != runs.Major() || wanted.Minor() > runs.Minor()+1) {
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "virtualCluster", "kubernetes", "version"),
					fmt.Sprintf("cannot skip a minor version from %s, which pod %s still runs", runs, pod.Name))}, nil
			}
		}
	}
	return nil, nil
}

// versionOf returns the version that the image vector has an image of kube-apiserver for: one that it lists, or that is the tag. Nil if it is not known, or is one
// of several.
func (h *Validator) versionOf(image string) *semver.Version {
	candidates := []string{image[strings.LastIndex(image, ":")+1:]}
	for _, source := range h.Images {
		if source.Name == kubeapiserver.Name {
			candidates = append(candidates, strings.TrimSpace(strings.TrimPrefix(ptr.Deref(source.TargetVersion, ""), "=")))
		}
	}
	var version *semver.Version
	for _, candidate := range candidates {
		parsed, err := semver.StrictNewVersion(strings.TrimPrefix(candidate, "v"))
		if err != nil {
			continue // a digest, or a range
		}
		if found, err := h.Images.Find(kubeapiserver.Name, imagevector.Query{TargetVersion: parsed.String()}); err != nil || found.String() != image {
			continue
		}
		if version != nil && !version.Equal(parsed) {
			return nil
		}
		version = parsed
	}
	return version
}

// ends is whether a pod does not run any more, or soon.
func ends(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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
