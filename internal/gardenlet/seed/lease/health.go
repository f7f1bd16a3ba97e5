package lease

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Health is whether the gardenlet could renew its Lease lately.
type Health struct {
	clock clock.PassiveClock
	// patience is how long a renewal counts, in case nobody even tries any more.
	patience time.Duration

	mu      sync.Mutex
	started bool
	renewed time.Time // zero if the last try failed
}

// NewHealth returns one that is well until the first try: a replica that does not lead has nothing to renew.
func NewHealth(clk clock.PassiveClock, patience time.Duration) *Health {
	return &Health{clock: clk, patience: patience}
}

// Set tells what came of a try.
func (h *Health) Set(ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.renewed = true, time.Time{}
	if ok {
		h.renewed = h.clock.Now()
	}
}

// Check is the answer to a liveness probe.
func (h *Health) Check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.started:
		return nil
	case h.renewed.IsZero():
		return errors.New("the last try to renew the Lease failed")
	case h.clock.Since(h.renewed) > h.patience:
		return errors.New("the Lease was not renewed for too long")
	}
	return nil
}
