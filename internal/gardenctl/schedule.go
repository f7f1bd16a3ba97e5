package gardenctl

import (
	"time"

	"github.com/robfig/cron/v3"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// change is the next effect of a hibernation schedule.
type change struct {
	at    time.Time
	sleep bool
}

// nextChange returns the next time that a schedule hibernates the cluster or wakes it up, or nil.
func nextChange(schedules []corev1beta1.HibernationSchedule, now time.Time) *change {
	var next *change
	for _, schedule := range schedules {
		zone := time.UTC
		if schedule.Location != nil {
			if loaded, err := time.LoadLocation(*schedule.Location); err == nil {
				zone = loaded
			}
		}
		for _, when := range []struct {
			expression *string
			sleep      bool
		}{{schedule.Start, true}, {schedule.End, false}} {
			if when.expression == nil {
				continue
			}
			parsed, err := cron.ParseStandard(*when.expression)
			if err != nil {
				continue // the API rejects these
			}
			at := parsed.Next(now.In(zone))
			if !at.IsZero() && (next == nil || at.Before(next.at)) {
				next = &change{at, when.sleep}
			}
		}
	}
	return next
}
