package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// NewSimulator returns a Simulator, and registers what it reads with the informers of the shoot.
type NewSimulator func(ctx context.Context, shoot kubernetes.Interface, factory informers.SharedInformerFactory) (plan.Simulator, error)

// Clusters are what a process connects to.
type Clusters struct {
	// Shoot is the cluster whose nodes are scaled, Control the one with its machines.
	Shoot, Control *rest.Config
	// Namespace is that of the machines.
	Namespace string
	// Clock is the time.
	Clock clock.WithTicker
}

// shutdownTimeout is how long requests to the server, and the removal of taints, may take when the process ends. Its pod has 5 s.
const shutdownTimeout = 3 * time.Second

// Run scales a cluster until the context ends, when it is the leader.
func Run(ctx context.Context, o Options, c Clusters, newSimulator NewSimulator) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shoot, err := kubernetes.NewForConfig(rest.AddUserAgent(c.Shoot, Name))
	if err != nil {
		return fmt.Errorf("client of the shoot: %w", err)
	}
	factory := newFactory(shoot)
	simulator, err := newSimulator(ctx, shoot, factory)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(machinev1alpha1.AddToScheme(scheme))
	control, err := cache.New(c.Control, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{c.Namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Field: fields.OneTermEqualSelector("metadata.name", machineControllerManager)},
		},
	})
	if err != nil {
		return fmt.Errorf("cache of the control cluster: %w", err)
	}
	api, err := client.New(c.Control, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("client of the control cluster: %w", err)
	}
	events, flushEvents, err := newEvents(ctx, c.Shoot)
	if err != nil {
		return err
	}
	defer flushEvents()
	s := New(Values{
		Options: o, Namespace: c.Namespace, Shoot: shoot, Factory: factory, Simulator: simulator, ControlCache: control, ControlAPI: api, Clock: c.Clock,
		Events: events,
	})
	stopServer, err := s.serve(ctx, o.Address)
	if err != nil {
		return err
	}
	defer stopServer()
	lead := func(ctx context.Context) error { return s.lead(ctx, factory, control) }
	if !o.LeaderElect {
		return lead(ctx)
	}
	return elect(ctx, o, shoot, lead)
}

// lead fills the caches and scans. Replicas that do not lead need no memory for them.
func (s *Scaler) lead(ctx context.Context, factory informers.SharedInformerFactory, control cache.Cache) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.wakeFor(nil, object) },
		UpdateFunc: s.wakeFor,
		DeleteFunc: func(any) {
			if s.drains.Load() > 0 {
				s.Wake()
			}
		},
	}); err != nil {
		return err
	}
	for _, kind := range []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.Machine{}, &machinev1alpha1.MachineClass{}, &appsv1.Deployment{}} {
		if _, err := control.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- control.Start(ctx) }()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel() // before the informers are waited for
	logf.FromContext(ctx).Info("Waiting for caches")
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watch %s: %w", kind, context.Cause(ctx))
		}
	}
	if !control.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch machines: %w", context.Cause(ctx))
	}
	s.lastScan.Store(s.clock.Now().UnixNano())
	s.lastSuccess.Store(s.clock.Now().UnixNano())
	s.leads.Store(true)
	s.Run(ctx)
	return <-ended
}

// wakeFor wakes it up for a pod that the scheduler found no node for.
func (s *Scaler) wakeFor(before, after any) {
	old, _ := before.(*corev1.Pod)
	pod, ok := after.(*corev1.Pod)
	if ok && pod.Spec.NodeName == "" && unschedulable(pod) && (old == nil || !unschedulable(old)) {
		s.Wake()
	}
}

// serve serves metrics and the health check.
func (s *Scaler) serve(ctx context.Context, address string) (func(), error) {
	if address == "" {
		return func() {}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/health-check", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Alive(); err != nil && s.leads.Load() {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("OK")) // the client has gone
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logf.FromContext(ctx).Error(err, "Serving metrics failed")
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ctx) // the process ends anyway
		<-done
	}, nil
}

// elect runs a function while this process has the Lease.
func elect(ctx context.Context, o Options, shoot kubernetes.Interface, lead func(context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("identity for the Lease: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	var led atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.leaseName}, Client: shoot.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host},
		},
		LeaseDuration: o.leaseDuration, RenewDeadline: o.renewDeadline, RetryPeriod: o.retryPeriod, ReleaseOnCancel: true, Name: Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				led.Store(true)
				defer cancel()
				result <- lead(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	elector.Run(ctx)
	if !led.Load() {
		return nil
	}
	stopped := ctx.Err() != nil
	cancel() // the Lease is lost, or the process is stopped
	if err := <-result; err != nil {
		return err
	}
	if !stopped {
		return errors.New("the Lease was lost")
	}
	return nil
}
