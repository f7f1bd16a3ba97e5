package hibernation

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// triggers are the times at which a Shoot is hibernated, or woken up.
type triggers struct {
	schedule  cron.Schedule
	hibernate bool
}

// verdict is what follows from the schedules of a Shoot.
type verdict struct {
	// due is true if there was a trigger that has not been executed yet.
	due bool
	// hibernate is whether the last such trigger hibernates the Shoot, or wakes it up.
	hibernate bool
	// next is when the next trigger is. Zero means never.
	next time.Time
}

// decide returns the last trigger since the one that was executed last, and the next one. Triggers that are longer ago than the deadline are
// ignored: otherwise a Shoot could be hibernated in the middle of the day because the controller did not run at night.
func decide(shoot *corev1beta1.Shoot, now time.Time, deadline time.Duration) (verdict, error) {
	all, err := parse(shoot.Spec.Hibernation.Schedules)
	since := now.Add(-deadline)
	executed := shoot.CreationTimestamp.Time
	if last := shoot.Status.LastHibernationTriggerTime; last != nil {
		executed = last.Time
	}
	if executed.After(since) {
		since = executed
	}
	var v verdict
	var last time.Time
	for _, t := range all {
		next := t.schedule.Next(since)
		// There are at most as many triggers as seconds in the deadline: `@every 1s` fires each second.
		for ; !next.IsZero() && !next.After(now); next = t.schedule.Next(next) {
			// Of two triggers at the same time, the one that wakes up counts: a hibernated cluster that is needed is worse than a running one that
			// is not.
			if next.After(last) || next.Equal(last) && !t.hibernate {
				v.due, v.hibernate, last = true, t.hibernate, next
			}
		}
		if !next.IsZero() && (v.next.IsZero() || next.Before(v.next)) {
			v.next = next
		}
	}
	return v, err
}

// parse returns the triggers of all valid schedules. The gardener-apiserver rejects invalid ones, but an older version may have accepted them.
func parse(schedules []corev1beta1.HibernationSchedule) ([]triggers, error) {
	var all []triggers
	var errs []error
	for i, schedule := range schedules {
		location := time.UTC
		if schedule.Location != nil {
			var err error
			if location, err = time.LoadLocation(*schedule.Location); err != nil {
				errs = append(errs, fmt.Errorf("spec.hibernation.schedules[%d].location: %w", i, err))
				continue
			}
		}
		for _, expression := range []struct {
			text      *string
			hibernate bool
		}{{schedule.Start, true}, {schedule.End, false}} {
			if expression.text == nil {
				continue
			}
			parsed, err := cron.ParseStandard(*expression.text)
			if err != nil {
				errs = append(errs, fmt.Errorf("spec.hibernation.schedules[%d]: %w", i, err))
				continue
			}
			if spec, ok := parsed.(*cron.SpecSchedule); ok {
				spec.Location = location
			}
			all = append(all, triggers{parsed, expression.hibernate})
		}
	}
	return all, errors.Join(errs...)
}
