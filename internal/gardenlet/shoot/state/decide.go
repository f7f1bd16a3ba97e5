package state

import (
	"bytes"
	"encoding/json"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube/shard"
)

// saveable is whether the state of a control plane is complete: not while it is created, migrated or restored.
func saveable(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil || shoot.Status.TechnicalID == "" {
		return false
	}
	switch last.Type {
	case corev1beta1.LastOperationTypeReconcile:
		return true
	case corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeRestore:
		return last.State == corev1beta1.LastOperationStateSucceeded
	case corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeLiveMigrate:
	}
	return false
}

// ended returns when the last operation of a shoot ended; it is zero while one is in progress. Credentials change in operations, and what is restored after the loss of
// the seed must have those with which etcd is encrypted.
func ended(shoot *corev1beta1.Shoot) time.Time {
	last := shoot.Status.LastOperation
	if last == nil || last.State == corev1beta1.LastOperationStateProcessing || last.State == corev1beta1.LastOperationStatePending {
		return time.Time{}
	}
	return last.LastUpdateTime.Time
}

// retried is whether the last operation of a shoot has failed and is tried again: so it ends every few minutes.
func retried(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateError
}

// savedWithin is whether a state was saved no longer than a period ago.
func savedWithin(saved *corev1beta1.ShootState, period time.Duration, now time.Time) bool {
	last, err := time.Parse(time.RFC3339Nano, saved.Annotations[constants.GardenerTimestamp])
	return err == nil && !last.After(now) && now.Sub(last) < period
}

// same is whether two states have the same content. An API server may write the same JSON in another way.
func same(a, b *corev1beta1.ShootStateSpec) bool {
	encodedA, errA := json.Marshal(a)
	encodedB, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(encodedA, encodedB)
}

// nextSave is when a state is to be saved: at once for a new Shoot and after each operation, then after the period, or up to a tenth of it earlier, so that not all
// shoots are saved at once. The API has the end of an operation in seconds.
func nextSave(shoot *corev1beta1.Shoot, saved *corev1beta1.ShootState, period time.Duration, now time.Time) time.Time {
	last, err := time.Parse(time.RFC3339Nano, saved.Annotations[constants.GardenerTimestamp])
	if err != nil || last.After(now) || !last.Truncate(time.Second).After(ended(shoot)) {
		return now
	}
	return last.Add(period - shard.Delay(shoot.UID, last, period/10))
}
