package lease

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Health is whether the gardenlet could renew its Lease recently.
type Health struct {
	clock clock.PassiveClock
	// timeout is how long after a renewal the gardenlet counts as healthy, in case that it does not try to renew the Lease any more.
	timeout time.Duration

	mu      sync.Mutex
	started bool
	renewed time.Time // zero if the last attempt failed
}

// NewHealth returns one that is healthy until the first attempt: a replica that is not the leader does not renew the Lease.
func NewHealth(clk clock.PassiveClock, timeout time.Duration) *Health {
	return &Health{clock: clk, timeout: timeout}
}

// Set records whether an attempt has succeeded.
func (h *Health) Set(ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started, h.renewed = true, time.Time{}
	if ok {
		h.renewed = h.clock.Now()
	}
}

// Renewed says whether the last attempt has succeeded, so that the process has reached garden and seed.
func (h *Health) Renewed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.renewed.IsZero()
}

// Check is for liveness probes.
func (h *Health) Check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.started:
		return nil
	case h.renewed.IsZero():
		return errors.New("the last attempt to renew the Lease failed")
	case h.clock.Since(h.renewed) > h.timeout:
		return errors.New("the Lease was not renewed for too long")
	}
	return nil
}
