package managedseed

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// spreadCreate says whether a ManagedSeed that appears may wait. A new one does not, nor one whose gardenlet is being tried: it may have to be rolled back.
func spreadCreate(object *seedmanagementv1alpha1.ManagedSeed) bool {
	healthy := kube.Condition(object.Status.Conditions, seedmanagementv1alpha1.ManagedSeedGardenletHealthy)
	tried := healthy != nil && healthy.Status == corev1beta1.ConditionProgressing
	return object.DeletionTimestamp == nil && object.Generation != 1 && !tried
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

// changed returns the names of Seeds that have appeared or gone, or whose gardenlet has become ready or not, without one of them.
func changed(before, after map[string]corev1beta1.ConditionStatus, without string) []string {
	names := map[string]bool{}
	for name, status := range before {
		if now, exists := after[name]; !exists || now != status {
			names[name] = true
		}
	}
	for name := range after {
		if _, existed := before[name]; !existed {
			names[name] = true
		}
	}
	delete(names, without)
	return slices.Sorted(maps.Keys(names))
}

// gardenletReady returns the condition of a Seed that says whether its gardenlet is ready. Its status is empty if there is none.
func gardenletReady(seed *corev1beta1.Seed) corev1beta1.Condition {
	return ptr.Deref(kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady), corev1beta1.Condition{})
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

// renewal is a new client certificate that an operator wants a gardenlet to get.
type renewal struct {
	// Requested is whether it is not there yet, and Begun whether the kubeconfig is being replaced already.
	Requested, Begun bool
	// Restarts is whether the pods are to start again for it.
	Restarts bool
}

// renewalOf returns the renewal of a ManagedSeed, by what is in the cluster of its gardenlet, and when its pods were last started for new credentials.
func renewalOf(object *seedmanagementv1alpha1.ManagedSeed, state bootstrap.State, bootstrapped string, now time.Time) renewal {
	if !renews(object) {
		return renewal{}
	}
	since, uid, _ := strings.Cut(object.Annotations[annotationRenewal], " ")
	began, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return renewal{Requested: true, Restarts: true}
	}
	if state.Valid(now) && string(state.Kubeconfig.UID) != uid {
		return renewal{Begun: true} // the new one
	}
	restarted, err := time.Parse(time.RFC3339, bootstrapped)
	return renewal{Requested: true, Begun: true, Restarts: err != nil || restarted.Before(began)} // a pass may have ended half way
}

// expired says whether the client certificate of the gardenlet of a Seed has expired.
func expired(seed *corev1beta1.Seed, now time.Time) bool {
	expiration := seed.Status.ClientCertificateExpirationTimestamp
	return expiration != nil && expiration.Time.Before(now)
}

// revives says whether the gardenlet of a ManagedSeed in deletion is deployed once more, as it cannot delete its Seed without a new client certificate. The
// Seed may be nil.
func revives(object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, now time.Time) bool {
	return seed != nil && shootReconciled(shoot) && (renews(object) || expired(seed, now))
}

// retries says whether what was rolled back is to be tried again: an operation, which raises the generation, requests it. A renewal does not, nor does the
// operation reconcile that gardener-controller-manager requests when the client certificate of a gardenlet has expired. The Seed may be nil.
func retries(t *trial.Trial, object *seedmanagementv1alpha1.ManagedSeed, seed *corev1beta1.Seed, now time.Time) bool {
	return t.Generation != object.Generation && !renews(object) && (seed == nil || !expired(seed, now))
}

// step is what is to be done for the gardenlet of a ManagedSeed.
type step string

const (
	// begin is to apply its objects for the first time, and to record those before.
	begin step = "begin"
	// apply is to apply them again: others may have changed them, or a pass has ended half way.
	apply step = "apply"
	// succeed is when it works.
	succeed step = "succeed"
	// rollBack is to apply the objects before, as it does not work.
	rollBack step = "rollBack"
	// restore is to apply them again: what is requested was rolled back.
	restore step = "restore"
)

// deployed is what is known about a gardenlet in a shoot.
type deployed struct {
	// ID identifies what is requested.
	ID string
	// Trial is the record of the last deployment.
	Trial *trial.Trial
	// Verdict says whether that works.
	Verdict trial.Verdict
	// Problem is what is wrong with the gardenlet now. Nil if nothing is.
	Problem *problem
	// Retry says that what was rolled back is to be tried again.
	Retry bool
	// Renews says that an operator wants it to get a new client certificate, which it does not have yet.
	Renews bool
}

// recheckIn returns when a gardenlet is checked again. While it is tried, or gets a new certificate, that is often: the Lease of its leader is not watched,
// nor its kubeconfig, and its token is valid for minutes only.
func (d deployed) recheckIn(period time.Duration) time.Duration {
	if d.Trial.State == trial.Trying || d.Renews {
		period = min(period, trial.SteadyTime)
	}
	if recheck := d.Verdict.RecheckIn; recheck > 0 {
		period = min(period, recheck)
	}
	return period
}

// decide returns what is to be done. What was requested before does not count: the last change of a user is never rolled back because of it.
func decide(d deployed) step {
	if d.Trial.ID != d.ID {
		return begin
	}
	before, failed := len(d.Trial.Previous) > 0, d.Verdict.Failed != ""
	switch d.Trial.State {
	case trial.RollingBack:
		return rollBack
	case trial.RolledBack:
		if d.Retry {
			return begin
		}
		return restore
	case trial.Trying:
		switch {
		case d.Verdict.Works, failed && !before && d.Problem == nil: // without another one to go back to, it may take longer
			return succeed
		case failed && before:
			return rollBack
		}
	case trial.Preparing, trial.Succeeded:
	}
	return apply
}
