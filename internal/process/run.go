package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// syncedWithin is how long a readiness probe waits for informers that have not synced.
	syncedWithin = 500 * time.Millisecond
	// headersWithin limits reading the headers of requests to the metrics server.
	headersWithin = 30 * time.Second
	// closedWithin is how long requests to the metrics server may last during shutdown.
	closedWithin = 2 * time.Second
)

// Process is what the controllers of a component are added to.
type Process struct {
	manager.Manager
	// Gates are the feature gates. They are only read in Wire; deeper code gets their values.
	Gates featuregate.FeatureGate
	// Metrics is the registry for the metrics of the component.
	Metrics prometheus.Registerer
}

// AddCluster adds a cluster besides that of the manager. Its informers start and stop with the process and count for readiness.
func (p *Process) AddCluster(name string, config *rest.Config, options ...cluster.Option) (cluster.Cluster, error) {
	// The options of the process come first, so that the given ones can change them.
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

// Run runs the component until the context ends. It returns an error if the process loses the leadership.
func (c Component[T]) Run(ctx context.Context, config *T, log logr.Logger) error {
	settings := c.Settings(config)
	set := maps.Clone(settings.FeatureGates)
	for name, value := range settings.FeatureGates {
		if is, ok := c.WithoutEffect[featuregate.Feature(name)]; ok {
			delete(set, name)
			if value != is {
				log.Info("Feature gate has no effect", "gate", name, "value", value)
			}
		}
	}
	gates, err := newGates(c.Features, set)
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
			log.Error(err, "Waiting until the Lease expires")
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
		HealthProbeBindAddress: settings.healthAddress(),
		MapperProvider:         Mapper(ctx, c.Kinds...),
	}
	// No controller reads managed fields, and they are a third of the memory of an object.
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
		// The process exits with the manager, so the next leader need not wait until the Lease expires.
		options.LeaderElectionReleaseOnCancel = true
	}
	if c.Options != nil {
		c.Options(config, &options)
	}
	return options, nil
}

// informersSynced fails until all informers have synced.
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

// addMetricsServer serves the metrics of controller-runtime and those of the component, and profiles if they are enabled. Probes at the same
// address are served, too. Every replica has it, leader or not.
func addMetricsServer(mgr manager.Manager, settings Settings, own prometheus.Gatherer) error {
	if settings.Metrics == nil {
		return nil
	}
	mux := http.NewServeMux()
	if settings.probesWithMetrics() {
		for path, check := range map[string]healthz.Checker{"/healthz": healthz.Ping, "/readyz": informersSynced(mgr.GetCache())} {
			mux.Handle(path, healthz.CheckHandler{Checker: check})
		}
	}
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

// memoryLimit is the soft memory limit of the Go runtime in bytes, from GOMEMLIMIT.
func memoryLimit() any {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return "none"
}
