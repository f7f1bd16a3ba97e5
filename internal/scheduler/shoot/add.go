// Package shoot binds Shoots that have no seed to the seed that suits them best.
//
// Garden cluster only: reads Shoots, Seeds, CloudProfiles, NamespacedCloudProfiles and the ConfigMaps with distances between regions, all
// from informers; writes spec.seedName of Shoots through their binding subresource and, if no seed fits, status.lastOperation, and
// events. Source: concepts.txt, "Gardener Scheduler".
//
// A decision is made from an index that informers keep up to date. It holds a place on the seed until the informer shows the binding, so
// that many workers can decide at once without exceeding the allocatable shoots of a seed. A concurrent write of another scheduler is a
// conflict, or is rejected by the API server, and leads to another attempt.
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

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Shoots are reconciled at the same time.
	ConcurrentSyncs int
	// Strategy is how the candidates among the seeds that fit are determined.
	Strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy
	// Metrics is where the controller registers its metrics.
	Metrics prometheus.Registerer
	// FirstRetry is after how long a Shoot that fits no seed is retried without an event; each further time is twice as long, up to ten
	// minutes. Changes of seeds and profiles are events, so this is for causes that are not watched. Zero means a second.
	FirstRetry time.Duration
}

// lastRetry limits the backoff.
const lastRetry = 10 * time.Minute

// Add adds the controller to a manager, whose cache must be configured with Cached. The index is its only source of events.
func Add(mgr manager.Manager, v Values) error {
	metrics, err := newMetrics(v.Metrics)
	if err != nil {
		return err
	}
	index := newIndex(mgr.GetCache(), v.Strategy, mgr.GetLogger())
	r := &reconciler{
		gardenCache: mgr.GetClient(),
		index:       index,
		clock:       clock.RealClock{},
		recorder:    mgr.GetEventRecorder(recorderName),
		metrics:     metrics,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			cmp.Or(v.FirstRetry, time.Second), lastRetry,
		),
	}
	c, err := controller.New(controllerName, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: v.ConcurrentSyncs,
		CacheSyncTimeout:        cacheSyncTimeout,
	})
	if err != nil {
		return err
	}
	return c.Watch(index)
}
