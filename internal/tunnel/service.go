package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// drainTimeout is how long a terminating process waits for its streams to end. The grace period of its pod is 30 seconds.
	drainTimeout = 25 * time.Second
	// proxyDrainTimeout is the same for a proxy, whose pod has a grace period of five: its node cannot reach the kube-apiserver until the
	// next pod runs, which is only created when this one is gone.
	proxyDrainTimeout = 2 * time.Second
	// headersTimeout is how long a client may take for the headers of a request.
	headersTimeout = 10 * time.Second
)

func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// service is what a process runs until its context ends.
type service struct {
	// ready is the check of /readyz, healthy that of /tunnel: whether bytes went through the tunnel lately.
	ready, healthy func() error
	// run has functions that return an error if they fail, and nil at the end.
	run []func() error
	// drain waits for streams to end, for drainTimeout at most; zero is the default. stop ends what does not end with its context.
	drain        func(context.Context)
	drainTimeout time.Duration
	stop         func()
}

// serve runs a service until the context ends, drains it and stops it. In the meantime it serves probes and metrics.
func (c *common) serve(ctx context.Context, start func(context.Context, *Metrics) (*service, error)) error {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	err = errors.Join(err, registry.Register(collectors.NewGoCollector()), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s, err := start(running, metrics)
	if err != nil {
		return err
	}
	defer s.stop()
	health, err := listen(running, c.healthPort)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(ctx, s, registry), ReadHeaderTimeout: headersTimeout}
	defer server.Close() //nolint:errcheck // the process ends
	failed := make(chan error, len(s.run)+1)
	go func() { failed <- server.Serve(health) }()
	for _, run := range s.run {
		go func() {
			if err := run(); err != nil {
				failed <- err
			}
		}()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	timeout := cmp.Or(s.drainTimeout, drainTimeout)
	logf.FromContext(ctx).Info("Waiting for streams to end", "timeout", timeout.String())
	draining, cancel := context.WithTimeout(running, timeout)
	defer cancel()
	s.drain(draining)
	return nil
}

// handler serves probes and metrics.
func handler(ctx context.Context, s *service, registry *prometheus.Registry) http.Handler {
	answer := func(check func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, "ok")
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", answer(func() error { return nil }))
	mux.HandleFunc("/readyz", answer(func() error { return errors.Join(context.Cause(ctx), s.ready()) }))
	mux.HandleFunc("/tunnel", answer(s.healthy))
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
