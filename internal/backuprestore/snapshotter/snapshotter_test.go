package snapshotter

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestUntilFull(t *testing.T) {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	daily, err := cron.ParseStandard("0 18 * * *")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		last time.Time
		want time.Duration
	}{
		"none yet":                               {time.Time{}, 0},
		"the last one in time":                   {now.Add(-time.Hour), 6 * time.Hour},
		"one was missed":                         {now.Add(-24 * time.Hour), 0},
		"the last one by a clock that was wrong": {now.AddDate(1, 0, 0), 6 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := &session{Snapshotter: &Snapshotter{config: Config{FullSchedule: daily}, clock: clocktesting.NewFakeClock(now)}, lastFull: tc.last}
			if got := r.untilFull(); got != tc.want {
				t.Errorf("untilFull() = %s, want %s", got, tc.want)
			}
		})
	}
}
