package core_test

import (
	"fmt"
	"testing"

	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

// A few shoots with thousands of schedules hold the hibernation controller of all projects. One that has as many already can still be hibernated and woken up.
func TestHibernationSchedulesOfShoot(t *testing.T) {
	withSchedules := func(n int) *v1beta1.Shoot {
		s := shoot()
		s.Spec.Hibernation = &v1beta1.Hibernation{}
		for i := range n {
			s.Spec.Hibernation.Schedules = append(s.Spec.Hibernation.Schedules, v1beta1.HibernationSchedule{Start: new(fmt.Sprintf("@every %ds", i+1))})
		}
		return s
	}
	const refused = "FieldValueTooMany spec.hibernation.schedules"
	for name, tc := range map[string]struct {
		before, after int
		want          []string
	}{
		"a new shoot":                {before: -1, after: 100},
		"a new shoot with too many":  {before: -1, after: 101, want: []string{refused}},
		"schedules are added":        {before: 0, after: 100},
		"too many are added":         {before: 99, after: 101, want: []string{refused}},
		"there were too many before": {before: 102, after: 102},
		"some of too many are gone":  {before: 103, after: 102},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSchedules(tc.after)
			if tc.before < 0 {
				validationtest.Expect(t, core.ValidateShoot(s, options), tc.want...)
				return
			}
			s.Spec.Hibernation.Enabled = new(true)
			validationtest.Expect(t, core.ValidateShootUpdate(s, withSchedules(tc.before), options), tc.want...)
		})
	}
}
