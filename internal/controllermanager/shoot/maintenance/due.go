package maintenance

import (
	"fmt"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/pkg/maintenance"
)

// due returns when the next maintenance of a Shoot is due; zero without a time window. It is in the current window if there was no
// maintenance in it yet, or else in the next one, at a time that differs between Shoots, so that not all begin at once. If the controller
// started, or the Shoot was created, within the window, the time is in the rest of it.
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
	return begin.Add(shard.Delay(shoot.UID, begin, end.Sub(begin)*9/10)), nil
}
