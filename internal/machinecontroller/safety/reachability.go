package safety

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Reachability checks whether the kube-apiserver of the target cluster responds. While it does not, no kubelet can report the health of its Node,
// so no machine may fail for that; afterwards, kubelets need time to report.
type Reachability struct {
	probe           func(context.Context) error
	period, timeout time.Duration
	clock           clock.WithTicker

	mu sync.Mutex
	// downSince is when the kube-apiserver stopped to respond, backSince when it responded again.
	downSince, backSince time.Time
}

// NewReachability returns a Reachability that sends a request each period, which fails after the timeout.
func NewReachability(config *rest.Config, period, timeout time.Duration, c clock.WithTicker) (*Reachability, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	url.Path = "/readyz"
	return newReachability(func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
		if err != nil {
			return err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusInternalServerError {
			return errNotReady(response.Status)
		}
		return nil
	}, period, timeout, c), nil
}

type errNotReady string

func (e errNotReady) Error() string { return "it responds with " + string(e) }

func newReachability(probe func(context.Context) error, period, timeout time.Duration, c clock.WithTicker) *Reachability {
	return &Reachability{probe: probe, period: period, timeout: timeout, clock: c}
}

// Start implements manager.Runnable. An outage cannot be watched, so it is polled.
func (r *Reachability) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(r.period)
	defer ticker.Stop()
	for {
		r.check(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// check sends one request.
func (r *Reachability) check(ctx context.Context) {
	probeCtx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := r.probe(probeCtx)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	log := logr.FromContextOrDiscard(ctx)
	switch {
	case err != nil && r.downSince.IsZero():
		log.Info("Pausing health checks of machines, as the target cluster is not reachable", "error", err.Error())
		r.downSince = r.clock.Now()
	case err == nil && !r.downSince.IsZero():
		log.Info("Resuming health checks of machines, as the target cluster is reachable again", "downSince", r.downSince)
		r.downSince, r.backSince = time.Time{}, r.clock.Now()
	}
}

// State returns whether the target cluster is reachable now, and since when, if there was an outage.
func (r *Reachability) State() (since time.Time, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backSince, r.downSince.IsZero()
}
