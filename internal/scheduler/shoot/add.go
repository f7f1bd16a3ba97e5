package shoot

import (
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

// Add adds the controller to a manager, whose cache keeps what Cached says. It watches through the index, see there.
func Add(mgr manager.Manager, config schedulerconfigv1alpha1.ShootSchedulerConfiguration, registerer prometheus.Registerer) error {
	metrics, err := newMetrics(registerer)
	if err != nil {
		return err
	}
	index := newIndex(mgr.GetCache(), config.Strategy, mgr.GetLogger())
	reconciler := &Reconciler{
		gardenClient: mgr.GetClient(),
		index:        index,
		clock:        clock.RealClock{},
		recorder:     mgr.GetEventRecorder(recorderName),
		metrics:      metrics,
		backoff:      workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
	c, err := controller.New(controllerName, mgr, controller.Options{
		Reconciler:              reconciler,
		MaxConcurrentReconciles: config.ConcurrentSyncs,
		CacheSyncTimeout:        cacheSyncTimeout,
	})
	if err != nil {
		return err
	}
	return c.Watch(index)
}
