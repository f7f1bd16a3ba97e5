package trial

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxUnchecked is how long a gardenlet that is tried may stay unchecked. It is checked every SteadyTime, unless its cluster cannot be reached, the Shoot
// in which it runs is being reconciled, or the process that checks it does not run.
const maxUnchecked = 3 * time.Minute

// Checks remember since when gardenlets are checked without an interruption. After one, the time that a gardenlet has to work begins again: its nodes may
// have been replaced meanwhile, or down. The zero value is ready to use.
type Checks struct {
	mu sync.Mutex
	of map[types.NamespacedName]check
}

// check has the times of the first and the last check without an interruption.
type check struct{ first, last time.Time }

// Since records a check of a gardenlet, and returns the time of the first one since the last interruption.
func (c *Checks) Since(key types.NamespacedName, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[types.NamespacedName]check{}
	}
	current := c.of[key]
	if now.Sub(current.last) > maxUnchecked {
		current.first = now
	}
	current.last = now
	c.of[key] = current
	return current.first
}

// Forget is for a gardenlet that this process does not check any more.
func (c *Checks) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, key)
}

// Checked returns a verdict that fails by the time only if the gardenlet was checked for all of Timeout, since the given time. It says to check it again
// after SteadyTime at the latest.
func (v Verdict) Checked(since, now time.Time) Verdict {
	switch {
	case v.Late && now.Sub(since) < Timeout:
		return Verdict{RecheckIn: SteadyTime}
	case v.RecheckIn > 0:
		v.RecheckIn = min(v.RecheckIn, SteadyTime)
	}
	return v
}
