package lifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// verdict is what follows from the Lease of a Seed.
type verdict struct {
	// seedUnknown is true if GardenletReady of the Seed has to turn Unknown.
	seedUnknown bool
	// shootsUnknown is true if the conditions of its Shoots have to turn Unknown.
	shootsUnknown bool
	// certificateExpired is true if the gardenlet cannot renew its Lease without new credentials.
	certificateExpired bool
	// recheckIn is when to check again.
	recheckIn time.Duration
}

// decide returns the verdict for the Lease of a Seed, which is nil if it does not exist.
func decide(seed *corev1beta1.Seed, lease *coordinationv1.Lease, now time.Time, v Values) verdict {
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	var lastSign time.Time // the last sign of life of the gardenlet
	switch {
	case lease != nil && lease.Spec.RenewTime != nil:
		lastSign = lease.Spec.RenewTime.Time
	case ready == nil:
		return verdict{recheckIn: v.SyncPeriod} // the gardenlet has not started yet
	case ready.Status == corev1beta1.ConditionUnknown:
		lastSign = ready.LastTransitionTime.Add(-v.MonitorPeriod)
	default:
		// The gardenlet reported the condition, but its Lease was deleted.
		lastSign = ready.LastUpdateTime.Time
	}
	age := now.Sub(lastSign)
	if age <= v.MonitorPeriod {
		return verdict{recheckIn: min(v.MonitorPeriod-age+time.Millisecond, v.MonitorPeriod)}
	}
	out := verdict{seedUnknown: true, shootsUnknown: age > v.ShootMonitorPeriod, recheckIn: v.SyncPeriod}
	if expiry := seed.Status.ClientCertificateExpirationTimestamp; expiry != nil {
		out.certificateExpired = now.After(expiry.Time)
	}
	return out
}
