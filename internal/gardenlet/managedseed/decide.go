package managedseed

import (
	"slices"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
)

// spreadCreate says whether a ManagedSeed that appears may wait. A new one does not.
func spreadCreate(object *seedmanagementv1alpha1.ManagedSeed) bool {
	return object.DeletionTimestamp == nil && object.Generation != 1
}

// spreadUpdate says whether a changed ManagedSeed may wait.
func spreadUpdate(object *seedmanagementv1alpha1.ManagedSeed, jitterUpdates bool) bool {
	if object.DeletionTimestamp != nil {
		return false
	}
	return jitterUpdates || object.Generation == object.Status.ObservedGeneration
}

// shootReconciled says whether the last change of a Shoot is done, so that a gardenlet can be deployed.
func shootReconciled(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return shoot.Status.ObservedGeneration == shoot.Generation && last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// changed returns the names that are in one set only, without one of them.
func changed(before, after map[string]bool, without string) []string {
	var names []string
	for _, sets := range [][2]map[string]bool{{before, after}, {after, before}} {
		for name := range sets[0] {
			if !sets[1][name] && name != without {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// needsBootstrap says whether a gardenlet has to request a client certificate with bootstrap credentials, by what is in its cluster, whether a new
// certificate is requested, and by its Seed, which may be nil.
func needsBootstrap(state bootstrap.State, renew bool, seed *corev1beta1.Seed, now time.Time) bool {
	switch {
	case renew:
		return true
	case state.Kubeconfig != nil:
		return !state.Valid(now)
	case state.Bootstrapping && seed != nil && !expired(seed, now):
		return false // it starts with the credentials that it got when its certificate was to be renewed
	}
	return true
}

// expired says whether the client certificate of the gardenlet of a Seed has expired.
func expired(seed *corev1beta1.Seed, now time.Time) bool {
	expiration := seed.Status.ClientCertificateExpirationTimestamp
	return expiration != nil && expiration.Time.Before(now)
}
