package shoot

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
)

// controllerName is the name in logs and metrics, recorderName that in events.
const (
	controllerName = "shoot"
	recorderName   = "gardener-scheduler"
)

// cacheSyncTimeout is how long it may take to list ten thousand shoots from a busy API server.
const cacheSyncTimeout = 5 * time.Minute

// Options are the settings of the controller.
type Options struct {
	// Config is its part of the configuration file.
	Config schedulerconfigv1alpha1.ShootSchedulerConfiguration
	// Metrics is where it registers its metrics.
	Metrics prometheus.Registerer
	// FirstRetry is how long a Shoot that fits nowhere waits first, unless something changes; each further time is twice as long, up to
	// ten minutes. What makes a Shoot fit is watched, so this is for what nobody sees. Zero means a second.
	FirstRetry time.Duration
}

// lastRetry limits the backoff.
const lastRetry = 10 * time.Minute

// Add adds the controller to a manager, whose cache keeps what Cached says. It watches through the index, see there.
func Add(mgr manager.Manager, options Options) error {
	metrics, err := newMetrics(options.Metrics)
	if err != nil {
		return err
	}
	index := newIndex(mgr.GetCache(), options.Config.Strategy, mgr.GetLogger())
	reconciler := &Reconciler{
		gardenClient: mgr.GetClient(),
		index:        index,
		clock:        clock.RealClock{},
		recorder:     mgr.GetEventRecorder(recorderName),
		metrics:      metrics,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			cmp.Or(options.FirstRetry, time.Second), lastRetry,
		),
	}
	c, err := controller.New(controllerName, mgr, controller.Options{
		Reconciler:              reconciler,
		MaxConcurrentReconciles: options.Config.ConcurrentSyncs,
		CacheSyncTimeout:        cacheSyncTimeout,
	})
	if err != nil {
		return err
	}
	return c.Watch(index)
}
