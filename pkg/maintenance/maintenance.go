// Package maintenance calculates the maintenance time windows of Shoots.
package maintenance

import (
	"fmt"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Layout is the layout of begin and end of a window, for time.Parse.
const Layout = "150405-0700"

const day = 24 * time.Hour

// Next returns the window that is open at a time, or else the next one.
func Next(window corev1beta1.MaintenanceTimeWindow, now time.Time) (begin, end time.Time, err error) {
	begin, end, err = Latest(window, now)
	if err == nil && !end.After(now) {
		begin, end = begin.Add(day), end.Add(day) // the zone is a fixed offset, so each day has 24 hours
	}
	return begin, end, err
}

// Latest returns the window that is open at a time, or else the one that was open last.
func Latest(window corev1beta1.MaintenanceTimeWindow, now time.Time) (begin, end time.Time, err error) {
	beginOfDay, err := time.Parse(Layout, window.Begin)
	if err != nil {
		return begin, end, fmt.Errorf("begin %q does not have the format HHMMSS+ZONE, such as 220000+0100", window.Begin)
	}
	endOfDay, err := time.Parse(Layout, window.End)
	if err != nil {
		return begin, end, fmt.Errorf("end %q does not have the format HHMMSS+ZONE, such as 220000+0100", window.End)
	}
	length := (endOfDay.Sub(beginOfDay)%day + day) % day
	local := now.In(beginOfDay.Location())
	begin = time.Date(local.Year(), local.Month(), local.Day(), beginOfDay.Hour(), beginOfDay.Minute(), beginOfDay.Second(), 0, beginOfDay.Location())
	if begin.After(now) {
		begin = begin.Add(-day)
	}
	return begin, begin.Add(length), nil
}
