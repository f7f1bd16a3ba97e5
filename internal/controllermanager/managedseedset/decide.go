package managedseedset

import (
	"cmp"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// action is what is done for one replica in a pass. It is also the reason of an event.
type action string

// Actions. Those that begin with Waiting and Not change nothing.
const (
	createShoot                  action = "CreatingShoot"
	deleteShoot                  action = "DeletingShoot"
	retryReconciliation          action = "RetryingShootReconciliation"
	giveUpReconciliation         action = "NotRetryingShootReconciliation"
	retryDeletion                action = "RetryingShootDeletion"
	giveUpDeletion               action = "NotRetryingShootDeletion"
	waitForShootReconciled       action = "WaitingForShootReconciled"
	waitForShootDeleted          action = "WaitingForShootDeleted"
	waitForShootHealthy          action = "WaitingForShootHealthy"
	createManagedSeed            action = "CreatingManagedSeed"
	deleteManagedSeed            action = "DeletingManagedSeed"
	waitForManagedSeedRegistered action = "WaitingForManagedSeedRegistered"
	waitForManagedSeedDeleted    action = "WaitingForManagedSeedDeleted"
	waitForSeedReady             action = "WaitingForSeedReady"
	nothing                      action = ""
)

// pendingReasons are why a replica is pending after an action. After others, none is.
var pendingReasons = map[action]seedmanagementv1alpha1.PendingReplicaReason{
	createShoot: seedmanagementv1alpha1.ShootReconcilingReason, waitForShootReconciled: seedmanagementv1alpha1.ShootReconcilingReason,
	deleteShoot: seedmanagementv1alpha1.ShootDeletingReason, waitForShootDeleted: seedmanagementv1alpha1.ShootDeletingReason,
	retryReconciliation: seedmanagementv1alpha1.ShootReconcileFailedReason, retryDeletion: seedmanagementv1alpha1.ShootDeleteFailedReason,
	createManagedSeed: seedmanagementv1alpha1.ManagedSeedPreparingReason, waitForManagedSeedRegistered: seedmanagementv1alpha1.ManagedSeedPreparingReason,
	deleteManagedSeed: seedmanagementv1alpha1.ManagedSeedDeletingReason, waitForManagedSeedDeleted: seedmanagementv1alpha1.ManagedSeedDeletingReason,
	waitForSeedReady: seedmanagementv1alpha1.SeedNotReadyReason, waitForShootHealthy: seedmanagementv1alpha1.ShootNotHealthyReason,
}

// errNotDeletable is when the set has to shrink and cannot.
var errNotDeletable = errors.New("no deletable replicas found")

// observed is what a set has.
type observed struct {
	// Set is its name.
	Set string
	// Target is how many replicas it should have.
	Target int
	// Replicas are those that it has.
	Replicas []replica
	// Next is the least number of the next replica.
	Next int
	// Pending is the replica that is worked on.
	Pending *seedmanagementv1alpha1.PendingReplica
	// MaxRetries is how often a failed Shoot is retried.
	MaxRetries int
	// RetriedBefore is when a Shoot must have failed to be retried again after it was given up.
	RetriedBefore time.Time
}

// verdict is what is done in a pass.
type verdict struct {
	Action action
	// Name is that of the replica.
	Name string
	// Retries is how often its Shoot was retried, with this pass.
	Retries int32
	// GaveUp is a replica that is pending no more, as its Shoot was retried often enough.
	GaveUp string
}

// next returns the number of the next replica.
func (o observed) next() int {
	number := o.Next
	for _, r := range o.Replicas {
		number = max(number, ordinal(o.Set, r.shoot.Name)+1)
	}
	return number
}

// decide returns what is done: the pending replica is first, then the number of replicas, then those that were given up before.
func decide(o observed) (verdict, error) {
	shrinks := o.staying() > o.Target
	gaveUp := ""
	if o.Pending != nil {
		for _, r := range o.Replicas {
			if r.shoot.Name != o.Pending.Name {
				continue
			}
			what := o.step(r, shrinks && r.deletable())
			if what.Action == giveUpReconciliation || what.Action == giveUpDeletion {
				gaveUp = r.shoot.Name
			} else if what.Action != nothing {
				return what, nil
			}
		}
	}
	switch {
	case len(o.Replicas) < o.Target:
		return verdict{Action: createShoot, Name: replicaName(o.Set, o.next()), GaveUp: gaveUp}, nil
	case shrinks:
		later := false // an error would try again at once
		for _, r := range slices.SortedFunc(slices.Values(o.Replicas), o.earlier) {
			if !r.deletable() {
				continue
			}
			if r.shoot.Name == gaveUp || r.state() == shootDeleteFailed && o.postponed(r) {
				later = true
				continue
			}
			what := o.step(r, true)
			what.GaveUp = gaveUp
			return what, nil
		}
		if later {
			return verdict{GaveUp: gaveUp}, nil
		}
		return verdict{GaveUp: gaveUp}, errNotDeletable
	}
	for _, r := range slices.SortedFunc(slices.Values(o.Replicas), func(a, b replica) int { return o.ordinalOf(a) - o.ordinalOf(b) }) {
		if r.shoot.Name != gaveUp && r.state() != managedSeedRegistered && !o.postponed(r) {
			what := o.step(r, false)
			what.GaveUp = gaveUp
			return what, nil
		}
	}
	return verdict{GaveUp: gaveUp}, nil
}

// staying returns how many replicas are left when those in deletion are gone. One whose deletion fails, and is retried later, is as good as gone: no other
// one is deleted in its place.
func (o observed) staying() int {
	return len(slices.DeleteFunc(slices.Clone(o.Replicas), func(r replica) bool { return r.shoot.DeletionTimestamp != nil }))
}

// postponed says whether a Shoot that was given up has failed not long ago. Any Shoot of the set causes a pass: without this, the next one would begin
// to count its retries again.
func (o observed) postponed(r replica) bool {
	if o.Pending != nil && o.Pending.Name == r.shoot.Name || r.state() != shootReconcileFailed && r.state() != shootDeleteFailed {
		return false
	}
	return r.shoot.Status.LastOperation.LastUpdateTime.After(o.RetriedBefore)
}

func (o observed) ordinalOf(r replica) int { return ordinal(o.Set, r.shoot.Name) }

// earlier orders replicas by which is deleted first.
func (o observed) earlier(a, b replica) int {
	value := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	return cmp.Or(int(a.state()-b.state()), value(a.seedReady())-value(b.seedReady()), value(a.shootHealthy())-value(b.shootHealthy()), o.ordinalOf(a)-o.ordinalOf(b))
}

// step returns what is done for a replica that is to exist, or to be deleted.
func (o observed) step(r replica, remove bool) verdict {
	var retries int32
	if o.Pending != nil && o.Pending.Name == r.shoot.Name {
		retries = ptr.Deref(o.Pending.Retries, 0)
	}
	v := verdict{Name: r.shoot.Name, Retries: retries}
	retry := func(again, giveUp action) action {
		if int(retries) >= o.MaxRetries {
			return giveUp
		}
		v.Retries++
		return again
	}
	switch r.state() {
	case shootReconcileFailed:
		if remove {
			v.Action = deleteShoot
		} else {
			v.Action = retry(retryReconciliation, giveUpReconciliation)
		}
	case shootDeleteFailed:
		v.Action = retry(retryDeletion, giveUpDeletion)
	case shootReconciling:
		v.Action = waitForShootReconciled
	case shootDeleting:
		v.Action = waitForShootDeleted
	case shootReconciled:
		v.Action = createManagedSeed
		if remove {
			v.Action = deleteShoot
		}
	case managedSeedPreparing:
		v.Action = waitForManagedSeedRegistered
		if remove {
			v.Action = deleteManagedSeed
		}
	case managedSeedDeleting:
		v.Action = waitForManagedSeedDeleted
	case managedSeedRegistered:
		switch {
		case remove:
			v.Action = deleteManagedSeed
		case !r.seedReady():
			v.Action = waitForSeedReady
		case !r.shootHealthy():
			v.Action = waitForShootHealthy
		}
	case unknown:
	}
	return v
}

// givenUp returns why a replica is pending no more.
func givenUp(r replica) action {
	if r.shoot.DeletionTimestamp != nil {
		return giveUpDeletion
	}
	return giveUpReconciliation
}

// pending returns the replica that is worked on after a pass, or nil.
func (v verdict) pending(before *seedmanagementv1alpha1.PendingReplica, now time.Time) *seedmanagementv1alpha1.PendingReplica {
	reason, ok := pendingReasons[v.Action]
	if !ok {
		return nil
	}
	p := &seedmanagementv1alpha1.PendingReplica{Name: v.Name, Reason: reason, Since: metav1.NewTime(now.Truncate(time.Second))}
	if v.Retries > 0 {
		p.Retries = &v.Retries
	}
	if before != nil && before.Name == p.Name && before.Reason == p.Reason {
		p.Since = before.Since
	}
	return p
}
