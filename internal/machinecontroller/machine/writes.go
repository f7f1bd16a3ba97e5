package machine

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writeEvery is how often the health of a Machine is written that changes all the time.
	writeEvery = 10 * time.Second
	// writesAtOnce is how many writes need not wait. A machine that joins, or whose Node is lost, has fewer changes.
	writesAtOnce = 6
)

// writes limits how often each Machine is written. The zero value is ready.
type writes struct {
	limiters sync.Map // of *rate.Limiter by client.ObjectKey
}

// wait returns 0 if a Machine may be written now, and counts that, or else how long that takes.
func (w *writes) wait(machine client.ObjectKey, now time.Time) time.Duration {
	limiter, _ := w.limiters.LoadOrStore(machine, rate.NewLimiter(rate.Every(writeEvery), writesAtOnce))
	reservation := limiter.(*rate.Limiter).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// forget removes what is known of a Machine that is gone.
func (w *writes) forget(machine client.ObjectKey) { w.limiters.Delete(machine) }
