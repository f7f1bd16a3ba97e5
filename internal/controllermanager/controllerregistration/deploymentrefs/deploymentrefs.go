// Package deploymentrefs says which objects of the garden a ControllerDeployment uses.
package deploymentrefs

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Of returns the Secrets and ConfigMaps that a ControllerDeployment names: those with credentials and certificate authorities of
// its chart's registry, and those that the chart's values refer to. All are in the namespace "garden". They are sorted, and each
// is there once.
func Of(deployment *gardencorev1.ControllerDeployment) []corev1.ObjectReference {
	var refs []corev1.ObjectReference
	add := func(kind, name string) {
		if name != "" {
			refs = append(refs, corev1.ObjectReference{Kind: kind, Namespace: constants.GardenNamespace, Name: name})
		}
	}
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		repository := deployment.Helm.OCIRepository
		if repository.PullSecretRef != nil {
			add("Secret", repository.PullSecretRef.Name)
		}
		if repository.CABundleSecretRef != nil {
			add("Secret", repository.CABundleSecretRef.Name)
		}
	}
	for _, resource := range deployment.Resources {
		if kind := resource.ResourceRef.Kind; kind == "Secret" || kind == "ConfigMap" {
			add(kind, resource.ResourceRef.Name)
		}
	}
	slices.SortFunc(refs, func(a, b corev1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(refs)
}
