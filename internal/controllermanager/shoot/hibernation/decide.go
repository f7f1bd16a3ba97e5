package hibernation

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// appointments are the times at which a Shoot goes to sleep, or wakes up.
type appointments struct {
	schedule cron.Schedule
	sleep    bool
}

// verdict is what the schedules of a Shoot ask for.
type verdict struct {
	// due says that there was an appointment which has not been kept yet.
	due bool
	// sleep is whether the Shoot is to sleep from then on.
	sleep bool
	// next is when the next appointment is. Zero means never.
	next time.Time
}

// decide finds the last appointment since the last one that was kept, and the next one. Those that are longer ago than the deadline
// are let go: a Shoot would fall asleep in the middle of the day because the controller did not run at night.
func decide(shoot *corev1beta1.Shoot, now time.Time, deadline time.Duration) (verdict, error) {
	all, err := parse(shoot.Spec.Hibernation.Schedules)
	since := now.Add(-deadline)
	kept := shoot.CreationTimestamp.Time
	if last := shoot.Status.LastHibernationTriggerTime; last != nil {
		kept = last.Time
	}
	if kept.After(since) {
		since = kept
	}
	var v verdict
	var last time.Time
	for _, a := range all {
		next := a.schedule.Next(since)
		// There are at most as many as minutes in the deadline.
		for ; !next.IsZero() && !next.After(now); next = a.schedule.Next(next) {
			// At the same time waking up wins: a cluster that is needed and sleeps is worse than one that runs for nothing.
			if next.After(last) || next.Equal(last) && !a.sleep {
				v.due, v.sleep, last = true, a.sleep, next
			}
		}
		if !next.IsZero() && (v.next.IsZero() || next.Before(v.next)) {
			v.next = next
		}
	}
	return v, err
}

// parse returns the appointments of all schedules that can be read. The API server lets no others through, but may have been older.
func parse(schedules []corev1beta1.HibernationSchedule) ([]appointments, error) {
	var all []appointments
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
			text  *string
			sleep bool
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
			all = append(all, appointments{parsed, expression.sleep})
		}
	}
	return all, errors.Join(errs...)
}

// failed tells whether the last operation of a Shoot failed for good, so that it waits for a person.
func failed(obj client.Object) bool {
	shoot := obj.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
	last := shoot.Status.LastOperation
	return last != nil && last.State == corev1beta1.LastOperationStateFailed && shoot.Generation == shoot.Status.ObservedGeneration
}
