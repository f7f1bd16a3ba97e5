package managedseed

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

// maxUnjudged is how long a gardenlet that is tried may stay unchecked. It is checked every trial.SteadyTime, unless its Shoot is being reconciled,
// cannot be reached, or this process does not run.
const maxUnjudged = 3 * time.Minute

// judgements remember since when gardenlets are checked without an interruption. After one, the time that a gardenlet has to work begins again: while
// a Shoot is reconciled, for instance, its nodes may be replaced.
type judgements struct {
	mu sync.Mutex
	of map[types.NamespacedName]judgement
}

// judgement has the times of the first and the last check without an interruption.
type judgement struct{ first, last time.Time }

// since records a check of the gardenlet of a ManagedSeed, and returns the time of the first one since the last interruption.
func (j *judgements) since(key types.NamespacedName, now time.Time) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.of == nil {
		j.of = map[types.NamespacedName]judgement{}
	}
	current := j.of[key]
	if now.Sub(current.last) > maxUnjudged {
		current.first = now
	}
	current.last = now
	j.of[key] = current
	return current.first
}

// end is when this process does not deploy the gardenlet of a ManagedSeed any more.
func (j *judgements) end(key types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.of, key)
}

// inTime returns a verdict that fails by the time only if all objects of the gardenlet were applied, and it was checked for all that time. Until then,
// the error of applying them is reported.
func inTime(v trial.Verdict, t *trial.Trial, since, now time.Time) trial.Verdict {
	if v.Late && (t.Applied.IsZero() || now.Sub(since) < trial.Timeout) {
		return trial.Verdict{RecheckIn: trial.SteadyTime}
	}
	return v
}
