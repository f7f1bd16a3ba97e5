package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// syncedWithin is how long a readiness probe waits for informers. Those that have synced answer at once.
	syncedWithin = 500 * time.Millisecond
	// headersWithin is how long a client of the metrics server may take for its request's headers.
	headersWithin = 30 * time.Second
	// closedWithin is how long requests to the metrics server may take after the process was told to stop.
	closedWithin = 2 * time.Second
)

// Process is what a component is wired to.
type Process struct {
	manager.Manager
	// Gates are the answers of the feature gates. They are read while wiring and handed on as answers.
	Gates featuregate.FeatureGate
	// Metrics is where the component registers its metrics.
	Metrics prometheus.Registerer
}

// AddCluster adds a cluster besides that of the manager. Its informers start and stop with the process and count for readiness.
func (p *Process) AddCluster(name string, config *rest.Config, options ...cluster.Option) (cluster.Cluster, error) {
	// First the process's own options, so that others can change them.
	own := func(o *cluster.Options) {
		o.Logger = p.GetLogger().WithValues("cluster", name)
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	added, err := cluster.New(config, append([]cluster.Option{own}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %q: %w", name, err)
	}
	if err := p.Add(added); err != nil {
		return nil, fmt.Errorf("add cluster %q: %w", name, err)
	}
	return added, p.AddReadyzCheck("informers-"+name, informersSynced(added.GetCache()))
}

// Run runs the component until the context ends, and ends the process if it loses the leadership.
func (c Component[T]) Run(ctx context.Context, config *T, log logr.Logger) error {
	settings := c.Settings(config)
	gates, err := newGates(c.Features, settings.FeatureGates)
	if err != nil {
		return err
	}
	log.Info("Starting "+c.Name, "version", Version(), "go", runtime.Version(), "memoryLimit", memoryLimit())
	options, err := c.managerOptions(ctx, config, settings, log)
	if err != nil {
		return err
	}
	clientConfig, err := ClientConfig(settings.Client)
	if err != nil {
		return err
	}
	if settings.electsLeader() {
		if err := releaseOwnLease(ctx, clientConfig, settings.LeaderElection, log); err != nil {
			log.Error(err, "Waiting until the Lease runs out")
		}
	}
	mgr, err := manager.New(rest.AddUserAgent(clientConfig, c.Name), options)
	if err != nil {
		return fmt.Errorf("set up manager: %w", err)
	}
	registry := prometheus.NewRegistry()
	err = errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("informers", informersSynced(mgr.GetCache())),
		addMetricsServer(mgr, settings, registry),
	)
	if err != nil {
		return err
	}
	if err := c.Wire(ctx, &Process{Manager: mgr, Gates: gates, Metrics: registry}, config); err != nil {
		return fmt.Errorf("wire controllers: %w", err)
	}
	return mgr.Start(ctx)
}

func (c Component[T]) managerOptions(ctx context.Context, config *T, settings Settings, log logr.Logger) (manager.Options, error) {
	scheme := k8sruntime.NewScheme()
	err := clientgoscheme.AddToScheme(scheme)
	for _, add := range c.Kinds {
		err = errors.Join(err, add(scheme))
	}
	for _, add := range c.Protobuf {
		err = errors.Join(err, apiutil.AddToProtobufScheme(add))
	}
	if err != nil {
		return manager.Options{}, fmt.Errorf("register kinds: %w", err)
	}
	options := manager.Options{
		Scheme:                 scheme,
		Logger:                 log,
		BaseContext:            func() context.Context { return logr.NewContext(context.WithoutCancel(ctx), log) },
		Metrics:                metricsserver.Options{BindAddress: "0"}, // served with the component's own, see addMetricsServer
		HealthProbeBindAddress: settings.Health.address(),
		MapperProvider:         Mapper(ctx, c.Kinds...),
	}
	// Nothing of ours reads managed fields, and they are a third of what an object takes.
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	if settings.electsLeader() {
		election := settings.LeaderElection
		options.LeaderElection = true
		options.LeaderElectionResourceLock = election.ResourceLock
		options.LeaderElectionNamespace = election.ResourceNamespace
		options.LeaderElectionID = election.ResourceName
		options.LeaseDuration = &election.LeaseDuration.Duration
		options.RenewDeadline = &election.RenewDeadline.Duration
		options.RetryPeriod = &election.RetryPeriod.Duration
		// The process ends when the manager does, so the next one need not wait for the Lease to run out.
		options.LeaderElectionReleaseOnCancel = true
	}
	if c.Options != nil {
		c.Options(config, &options)
	}
	return options, nil
}

// informersSynced fails while an informer has not seen all objects yet.
func informersSynced(informers cache.Informers) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncedWithin)
		defer cancel()
		if !informers.WaitForCacheSync(ctx) {
			return errors.New("informers have not synced yet")
		}
		return nil
	}
}

// addMetricsServer serves the metrics of controller-runtime and those of the component, and profiles if they are switched on. Every
// replica has it, leader or not.
func addMetricsServer(mgr manager.Manager, settings Settings, own prometheus.Gatherer) error {
	if settings.Metrics == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{crmetrics.Registry, own}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError,
	}))
	if settings.profiling() {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	if settings.contentionProfiling() {
		runtime.SetBlockProfileRate(1)
	}
	timeout := closedWithin
	return mgr.Add(&manager.Server{
		Name:            "metrics",
		Server:          &http.Server{Addr: settings.Metrics.address(), Handler: mux, ReadHeaderTimeout: headersWithin},
		ShutdownTimeout: &timeout,
	})
}

// memoryLimit is what the garbage collector tries to stay below, in bytes, as GOMEMLIMIT sets it.
func memoryLimit() any {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return "none"
}
