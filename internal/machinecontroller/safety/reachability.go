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

// Reachability knows whether the API server of the target cluster answers. While it does not, no Node can say that it is well, so no
// machine may be taken for broken because of that; when it is back, Nodes need time to report.
type Reachability struct {
	probe           func(context.Context) error
	period, timeout time.Duration
	clock           clock.WithTicker

	mu sync.Mutex
	// downSince is when the API server stopped to answer, backSince when it answered again.
	downSince, backSince time.Time
}

// NewReachability returns what asks the API server every period, and gives it up after the timeout.
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

func (e errNotReady) Error() string { return "it answers with " + string(e) }

func newReachability(probe func(context.Context) error, period, timeout time.Duration, c clock.WithTicker) *Reachability {
	return &Reachability{probe: probe, period: period, timeout: timeout, clock: c}
}

// Start implements manager.Runnable. An outage cannot be watched for, so it asks.
func (r *Reachability) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(r.period)
	defer ticker.Stop()
	for {
		r.look(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// look asks once.
func (r *Reachability) look(ctx context.Context) {
	ask, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := r.probe(ask)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	log := logr.FromContextOrDiscard(ctx)
	switch {
	case err != nil && r.downSince.IsZero():
		log.Info("Freezing machines, as the target cluster does not answer", "error", err.Error())
		r.downSince = r.clock.Now()
	case err == nil && !r.downSince.IsZero():
		log.Info("Going on with machines, as the target cluster answers again", "downSince", r.downSince)
		r.downSince, r.backSince = time.Time{}, r.clock.Now()
	}
}

// State tells whether the target cluster is reachable now, and since when, if it was not before.
func (r *Reachability) State() (since time.Time, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backSince, r.downSince.IsZero()
}
