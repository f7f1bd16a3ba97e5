package managedseedset

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// state is how far a replica is. A lower one is deleted first.
type state int

const (
	unknown state = iota
	shootReconcileFailed
	shootDeleteFailed
	shootReconciling
	shootDeleting
	shootReconciled
	managedSeedPreparing
	managedSeedDeleting
	managedSeedRegistered
)

// replica is a Shoot of a set, with the ManagedSeed and the Seed of the same name, which may be nil.
type replica struct {
	shoot       *corev1beta1.Shoot
	managedSeed *seedmanagementv1alpha1.ManagedSeed
	seed        *corev1beta1.Seed
	// hosts says that Shoots are scheduled to the Seed.
	hosts bool
}

// ordinal returns the number of a replica, or -1 if it is not one of the set.
func ordinal(set, name string) int {
	digits, found := strings.CutPrefix(name, set+"-")
	number, err := strconv.ParseUint(digits, 10, 31)
	if !found || err != nil {
		return -1
	}
	return int(number)
}

func (r replica) state() state {
	if m := r.managedSeed; m != nil {
		registered := kube.Condition(m.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered)
		switch {
		case m.DeletionTimestamp != nil:
			return managedSeedDeleting
		case m.Status.ObservedGeneration == m.Generation && registered != nil && registered.Status == corev1beta1.ConditionTrue:
			return managedSeedRegistered
		}
		return managedSeedPreparing
	}
	last := r.shoot.Status.LastOperation
	// One that is to be retried has not started yet.
	switch failed := kube.ShootFailed(r.shoot) && r.shoot.Annotations[constants.GardenerOperation] == ""; {
	case r.shoot.DeletionTimestamp != nil && failed:
		return shootDeleteFailed
	case r.shoot.DeletionTimestamp != nil:
		return shootDeleting
	case failed:
		return shootReconcileFailed
	case last != nil && last.State == corev1beta1.LastOperationStateSucceeded && r.shoot.Status.ObservedGeneration == r.shoot.Generation:
		return shootReconciled
	}
	return shootReconciling
}

// seedReady says whether Shoots can be scheduled to the Seed.
func (r replica) seedReady() bool {
	if r.seed == nil || r.seed.DeletionTimestamp != nil || r.seed.Status.ObservedGeneration != r.seed.Generation {
		return false
	}
	for _, typ := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedBackupBucketsReady} {
		condition := kube.Condition(r.seed.Status.Conditions, typ)
		if condition == nil && typ == corev1beta1.SeedBackupBucketsReady {
			continue // a Seed without backups
		}
		if condition == nil || condition.Status != corev1beta1.ConditionTrue {
			return false
		}
	}
	return true
}

func (r replica) shootHealthy() bool {
	return r.shoot.Status.ObservedGeneration == r.shoot.Generation && r.shoot.Labels[constants.ShootStatus] == "healthy"
}

func (r replica) ready() bool {
	return r.state() == managedSeedRegistered && r.seedReady() && r.shootHealthy()
}

// deletable says whether a replica may be deleted when the set shrinks.
func (r replica) deletable() bool {
	protected := func(object metav1.Object) bool {
		return object.GetAnnotations()[constants.ProtectFromDeletion] == "true"
	}
	return !r.hosts && !protected(r.shoot) && (r.managedSeed == nil || !protected(r.managedSeed))
}
