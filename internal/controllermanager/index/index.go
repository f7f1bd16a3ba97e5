// Package index lets the caches of the gardener-controller-manager find objects by what they refer to, so that the work for one
// object does not grow with the number of all others.
package index

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

// Names of indexes. Where the API server can select by the same field, the name is that of its field selector.
const (
	// ShootSeeds finds Shoots by each seed that hosts their control plane now or is to do so.
	ShootSeeds = "seeds"
	// ShootSelfHosted finds the Shoots that host their own control plane; the value is True.
	ShootSelfHosted = "selfHosted"
	// SeedName finds BackupBuckets and BackupEntries by their seed.
	SeedName = "spec.seedName"
	// ShootRef finds BackupBuckets, BackupEntries and ControllerInstallations by the self-hosted shoot they are for; the value is
	// what Key returns.
	ShootRef = "spec.shootRef"
	// SeedRef finds ControllerInstallations by the seed they are for.
	SeedRef = "spec.seedRef.name"
	// RegistrationRef finds ControllerInstallations by their ControllerRegistration.
	RegistrationRef = "spec.registrationRef.name"
	// DeploymentRefs finds ControllerRegistrations by their ControllerDeployment.
	DeploymentRefs = "spec.deployment.deploymentRefs.name"
	// References finds Seeds and ControllerDeployments by the keys of the Secrets and ConfigMaps that they refer to.
	References = "references"
	// ExposureClass finds Shoots by their ExposureClass.
	ExposureClass = "spec.exposureClassName"
	// BastionShoot finds Bastions by the Shoot in their namespace.
	BastionShoot = "spec.shootRef.name"
)

// True is the value of indexes over a yes or no.
const True = "true"

// Key is the value of an index over references to objects in namespaces.
func Key(namespace, name string) string { return namespace + "/" + name }

// Add registers all indexes. It is called once for a cache, before the controllers that use them are added.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	var errs []error
	by := func(obj client.Object, name string, values client.IndexerFunc) {
		if err := indexer.IndexField(ctx, obj, name, values); err != nil {
			errs = append(errs, fmt.Errorf("index %T by %s: %w", obj, name, err))
		}
	}
	by(&corev1beta1.Shoot{}, ShootSeeds, of(Seeds))
	by(&corev1beta1.Shoot{}, ShootSelfHosted, of(func(s *corev1beta1.Shoot) []string {
		if SelfHosted(s) {
			return []string{True}
		}
		return nil
	}))
	by(&corev1beta1.BackupBucket{}, SeedName, of(func(b *corev1beta1.BackupBucket) []string { return optional(b.Spec.SeedName) }))
	by(&corev1beta1.BackupBucket{}, ShootRef, of(func(b *corev1beta1.BackupBucket) []string { return key(b.Spec.ShootRef) }))
	by(&corev1beta1.BackupEntry{}, SeedName, of(func(e *corev1beta1.BackupEntry) []string { return optional(e.Spec.SeedName) }))
	by(&corev1beta1.BackupEntry{}, ShootRef, of(func(e *corev1beta1.BackupEntry) []string { return key(e.Spec.ShootRef) }))
	by(&corev1beta1.ControllerInstallation{}, SeedRef, of(func(i *corev1beta1.ControllerInstallation) []string {
		if i.Spec.SeedRef == nil {
			return nil
		}
		return []string{i.Spec.SeedRef.Name}
	}))
	by(&corev1beta1.ControllerInstallation{}, ShootRef, of(func(i *corev1beta1.ControllerInstallation) []string { return key(i.Spec.ShootRef) }))
	by(&corev1beta1.ControllerInstallation{}, RegistrationRef, of(func(i *corev1beta1.ControllerInstallation) []string {
		return []string{i.Spec.RegistrationRef.Name}
	}))
	by(&corev1beta1.ControllerRegistration{}, DeploymentRefs, of(Deployments))
	by(&corev1beta1.Shoot{}, ExposureClass, of(func(s *corev1beta1.Shoot) []string { return optional(s.Spec.ExposureClassName) }))
	by(&operationsv1alpha1.Bastion{}, BastionShoot, of(func(b *operationsv1alpha1.Bastion) []string { return []string{b.Spec.ShootRef.Name} }))
	by(&corev1beta1.Seed{}, References, of(func(s *corev1beta1.Seed) []string { return keys(SeedReferences(s)) }))
	by(&gardencorev1.ControllerDeployment{}, References, of(func(d *gardencorev1.ControllerDeployment) []string { return keys(DeploymentReferences(d)) }))
	return errors.Join(errs...)
}

// Seeds are the seeds that host the control plane of a Shoot now or are to do so. They are two while it moves.
func Seeds(shoot *corev1beta1.Shoot) []string {
	seeds := optional(shoot.Spec.SeedName)
	if now := shoot.Status.SeedName; now != nil && (len(seeds) == 0 || seeds[0] != *now) {
		seeds = append(seeds, *now)
	}
	return seeds
}

// SelfHosted tells whether a Shoot hosts its own control plane, on machines of a worker pool.
func SelfHosted(shoot *corev1beta1.Shoot) bool {
	for i := range shoot.Spec.Provider.Workers {
		if shoot.Spec.Provider.Workers[i].ControlPlane != nil {
			return true
		}
	}
	return false
}

// Deployments are the ControllerDeployments that a ControllerRegistration refers to.
func Deployments(registration *corev1beta1.ControllerRegistration) []string {
	if registration.Spec.Deployment == nil {
		return nil
	}
	var names []string
	for _, ref := range registration.Spec.Deployment.DeploymentRefs {
		names = append(names, ref.Name)
	}
	return names
}

func of[T client.Object](values func(T) []string) client.IndexerFunc {
	return func(obj client.Object) []string { return values(obj.(T)) } //nolint:forcetypeassert // an index sees one kind only
}

func optional(name *string) []string {
	if name == nil {
		return nil
	}
	return []string{*name}
}

func key(ref *corev1.ObjectReference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(ref.Namespace, ref.Name)}
}
