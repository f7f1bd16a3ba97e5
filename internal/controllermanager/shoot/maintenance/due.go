package maintenance

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/maintenance"
)

// due returns when the next maintenance of a Shoot is due; zero without a window. That is at a place of its own in the window that is
// open, if nothing was done in it yet, or else in the next one: not all Shoots begin at once. What was missed before the controller
// started, or the Shoot was there, is spread over the rest of the window.
func due(shoot *corev1beta1.Shoot, started, now time.Time) (time.Time, error) {
	w := window(shoot)
	if w == nil {
		return time.Time{}, nil
	}
	begin, end, err := maintenance.Next(*w, now)
	if last := shoot.Status.LastMaintenance; err == nil && last != nil && !last.TriggeredTime.Time.Before(begin) {
		begin, end, err = maintenance.Next(*w, end)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("spec.maintenance.timeWindow: %w", err)
	}
	for _, earliest := range []time.Time{started, shoot.CreationTimestamp.Time} {
		if begin.Before(earliest) {
			begin = earliest
		}
	}
	// The last tenth is left for what maintenance starts.
	return begin.Add(share(shoot, begin, end.Sub(begin)*9/10)), nil
}

// share is a part of a duration that is another for every Shoot and every time, and the same at every look.
func share(shoot *corev1beta1.Shoot, at time.Time, of time.Duration) time.Duration {
	hash := fnv.New64a()
	fmt.Fprint(hash, shoot.UID, at.Unix())
	return time.Duration(hash.Sum64() % uint64(of+1)) //nolint:gosec // less than a duration
}
