package core_test

import (
	"fmt"
	"testing"

	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

// A member of a project creates a shoot with thousands of pools, which fills the memory of the gardenlet of a seed with shoots of others. One that has as many
// pools already can still be changed, and lose pools.
func TestPoolsOfShoot(t *testing.T) {
	withPools := func(n int) *v1beta1.Shoot {
		s := shoot()
		pool := s.Spec.Provider.Workers[0]
		s.Spec.Provider.Workers = nil
		for i := range n {
			p := pool.DeepCopy()
			p.Name = fmt.Sprintf("p%d", i)
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, *p)
		}
		return s
	}
	const refused = "FieldValueTooMany spec.provider.workers"
	for name, tc := range map[string]struct {
		before, after int
		want          []string
	}{
		"a new shoot":                {after: 1000},
		"a new shoot with too many":  {after: 1001, want: []string{refused}},
		"pools are added":            {before: 999, after: 1000},
		"too many pools are added":   {before: 999, after: 1001, want: []string{refused}},
		"one more of too many":       {before: 1002, after: 1003, want: []string{refused}},
		"there were too many before": {before: 1002, after: 1002},
		"some of too many are gone":  {before: 1003, after: 1002},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withPools(tc.after)
			if tc.before == 0 {
				validationtest.Expect(t, core.ValidateShoot(s, options), tc.want...)
				return
			}
			s.Spec.Provider.Workers[0].Maximum++
			validationtest.Expect(t, core.ValidateShootUpdate(s, withPools(tc.before), options), tc.want...)
		})
	}
}
