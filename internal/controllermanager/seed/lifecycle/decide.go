package lifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// periods say how patient we are.
type periods struct {
	// monitor is how long a gardenlet may be silent before its Seed is not ready.
	monitor time.Duration
	// shootMonitor is how long it may be silent before nothing is known about its shoots.
	shootMonitor time.Duration
	// sync is how often a silent gardenlet is looked at.
	sync time.Duration
}

// verdict is what the Lease of a Seed means.
type verdict struct {
	// seedUnknown says that the gardenlet does not work.
	seedUnknown bool
	// shootsUnknown says that it has not done so for so long that what it said about shoots does not count any more.
	shootsUnknown bool
	// certificateExpired says that it cannot work again without new credentials.
	certificateExpired bool
	// recheckIn is when to look again.
	recheckIn time.Duration
}

// decide judges from the Lease, which may be nil, whether the gardenlet of a Seed works.
func decide(seed *corev1beta1.Seed, lease *coordinationv1.Lease, now time.Time, p periods) verdict {
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	var spoke time.Time // when the gardenlet last did
	switch {
	case lease != nil && lease.Spec.RenewTime != nil:
		spoke = lease.Spec.RenewTime.Time
	case ready == nil:
		return verdict{recheckIn: p.sync} // it has yet to speak for the first time
	case ready.Status == corev1beta1.ConditionUnknown:
		spoke = ready.LastTransitionTime.Add(-p.monitor)
	default:
		// It said so once, but its Lease is gone.
		spoke = ready.LastUpdateTime.Time
	}
	silent := now.Sub(spoke)
	if silent <= p.monitor {
		return verdict{recheckIn: min(p.monitor-silent+time.Millisecond, p.monitor)}
	}
	v := verdict{seedUnknown: true, shootsUnknown: silent > p.shootMonitor, recheckIn: p.sync}
	if expiry := seed.Status.ClientCertificateExpirationTimestamp; expiry != nil {
		v.certificateExpired = now.After(expiry.Time)
	}
	return v
}

const (
	reasonSeedUnknown  = "SeedStatusUnknown"
	messageSeedUnknown = "Gardenlet stopped posting seed status."

	reasonShootUnknown  = "StatusUnknown"
	messageShootUnknown = "Gardenlet stopped sending heartbeats."
)

// unknown turns all conditions of a list Unknown, and returns whether one was not. The given list is not changed.
func unknown(conditions []corev1beta1.Condition, now time.Time) ([]corev1beta1.Condition, bool) {
	changed := false
	for _, condition := range conditions {
		if condition.Status == corev1beta1.ConditionUnknown {
			continue
		}
		conditions, _ = kube.SetCondition(conditions, corev1beta1.Condition{
			Type: condition.Type, Status: corev1beta1.ConditionUnknown, Reason: reasonShootUnknown, Message: messageShootUnknown,
		}, now)
		changed = true
	}
	return conditions, changed
}
