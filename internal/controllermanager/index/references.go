package index

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// SeedReferences returns the Secrets and ConfigMaps that a Seed refers to: what its extensions use, and the credentials for its
// backups and DNS records. They are sorted, and each is there once.
func SeedReferences(seed *corev1beta1.Seed) []uses.Ref {
	if released(seed) {
		return nil
	}
	var refs []uses.Ref
	for _, resource := range seed.Spec.Resources {
		refs = add(refs, resource.ResourceRef.Kind, constants.GardenNamespace, resource.ResourceRef.Name)
	}
	credentials := func(ref *corev1.ObjectReference) {
		if ref != nil {
			refs = add(refs, ref.Kind, ref.Namespace, ref.Name)
		}
	}
	if seed.Spec.Backup != nil {
		credentials(seed.Spec.Backup.CredentialsRef)
	}
	dns := &seed.Spec.DNS
	if dns.Provider != nil {
		credentials(dns.Provider.CredentialsRef)
	}
	if dns.Internal != nil {
		credentials(&dns.Internal.CredentialsRef)
	}
	for i := range dns.Defaults {
		credentials(&dns.Defaults[i].CredentialsRef)
	}
	return sorted(refs)
}

// DeploymentReferences returns the Secrets and ConfigMaps that a ControllerDeployment refers to: credentials and certificate
// authorities of its chart's registry, and what the chart's values name. They are sorted, and each is there once.
func DeploymentReferences(deployment *gardencorev1.ControllerDeployment) []uses.Ref {
	if released(deployment) {
		return nil
	}
	var refs []uses.Ref
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		repository := deployment.Helm.OCIRepository
		for _, ref := range []*corev1.LocalObjectReference{repository.PullSecretRef, repository.CABundleSecretRef} {
			if ref != nil {
				refs = add(refs, uses.Secret, constants.GardenNamespace, ref.Name)
			}
		}
	}
	for _, resource := range deployment.Resources {
		refs = add(refs, resource.ResourceRef.Kind, constants.GardenNamespace, resource.ResourceRef.Name)
	}
	return sorted(refs)
}

func add(refs []uses.Ref, kind, namespace, name string) []uses.Ref {
	if kind != uses.Secret && kind != uses.ConfigMap || name == "" {
		return refs
	}
	return append(refs, uses.Ref{Kind: kind, Namespace: namespace, Name: name})
}

func sorted(refs []uses.Ref) []uses.Ref {
	slices.SortFunc(refs, func(a, b uses.Ref) int { return cmp.Compare(a.Key(), b.Key()) })
	return slices.Compact(refs)
}

// released tells whether an object is being deleted and everybody else has finished with it. Until then its gardenlet may still need
// what it refers to.
func released(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && !slices.ContainsFunc(obj.GetFinalizers(), func(finalizer string) bool {
		return finalizer != constants.FinalizerReferenceProtection
	})
}

func keys(refs []uses.Ref) []string {
	var keys []string
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	return keys
}
