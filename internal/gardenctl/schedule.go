package gardenctl

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// maintenanceTime is the layout of the begin and the end of a maintenance window.
const maintenanceTime = "150405-0700"

// nextWindow returns the maintenance window that is open now, or else the next one.
func nextWindow(window corev1beta1.MaintenanceTimeWindow, now time.Time) (begin, end time.Time, err error) {
	beginOfDay, err := time.Parse(maintenanceTime, window.Begin)
	if err != nil {
		return begin, end, fmt.Errorf("begin %q is no time like 220000+0100", window.Begin)
	}
	endOfDay, err := time.Parse(maintenanceTime, window.End)
	if err != nil {
		return begin, end, fmt.Errorf("end %q is no time like 220000+0100", window.End)
	}
	const day = 24 * time.Hour
	length := (endOfDay.Sub(beginOfDay)%day + day) % day
	local := now.In(beginOfDay.Location())
	begin = time.Date(local.Year(), local.Month(), local.Day()-1, beginOfDay.Hour(), beginOfDay.Minute(), beginOfDay.Second(), 0, beginOfDay.Location())
	for !begin.Add(length).After(now) {
		begin = begin.Add(day) // the zone is a fixed offset, so each day has 24 hours
	}
	return begin, begin.Add(length), nil
}

// change is when a hibernation schedule does something.
type change struct {
	at    time.Time
	sleep bool
}

// nextChange returns the next time that a schedule puts the cluster to sleep or wakes it up, or nil.
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
				continue // the API refuses these
			}
			at := parsed.Next(now.In(zone))
			if !at.IsZero() && (next == nil || at.Before(next.at)) {
				next = &change{at, when.sleep}
			}
		}
	}
	return next
}
