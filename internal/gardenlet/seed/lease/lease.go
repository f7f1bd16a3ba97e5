// Package lease is the heartbeat of a gardenlet in the garden.
//
// It checks the health of the API server of the seed every few seconds. If that is healthy, it renews the Lease of the seed in the garden
// and sets the condition GardenletReady of the Seed to True. It reads the one Seed, and writes its status and the Lease. Source:
// concepts.txt, gardenlet, Seed Controller, "Lease" reconciler.
package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// requestTimeout is the end of the requests of one pass. A slower API server does not count as healthy.
const requestTimeout = 10 * time.Second

// Values are what the controller works with.
type Values struct {
	// Garden is the cluster with the Seed.
	Garden cluster.Cluster
	// SeedREST is a client for the API server of the seed, for /healthz.
	SeedREST rest.Interface
	// Period is how often the Lease is renewed.
	Period time.Duration
	// Health records the result of each attempt.
	Health *Health
	// Clock is for the Lease and the condition.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("seed-lease").
		// It requeues itself every few seconds, so that updates are ignored.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{},
			predicate.TypedFuncs[*corev1beta1.Seed]{
				UpdateFunc: func(event.TypedUpdateEvent[*corev1beta1.Seed]) bool { return false },
				DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
			})).
		Complete(r)
}

type reconciler struct {
	Values
	gardenCache client.Client
	// last is the Lease as it was last written, so that it need not be read. Only one pass runs at a time.
	last *coordinationv1.Lease
}

// Reconcile renews the Lease if the API server of the seed is healthy.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// Errors are not returned: with the backoff of the queue, the Lease would expire.
	result := reconcile.Result{RequeueAfter: r.Period}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := r.SeedREST.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		r.Health.Set(false)
		logf.FromContext(ctx).Error(err, "Not renewing Lease because the API server of the seed is not healthy")
		return result, nil
	}
	if err := r.renew(ctx, seed); err != nil {
		r.Health.Set(false)
		logf.FromContext(ctx).Error(err, "Failed renewing Lease")
		return result, nil
	}
	r.Health.Set(true)
	if err := r.report(ctx, seed); err != nil && !kube.Routine(err) {
		logf.FromContext(ctx).Error(err, "Failed setting condition", "condition", corev1beta1.SeedGardenletReady)
	}
	return result, nil
}

// renew writes the Lease.
func (r *reconciler) renew(ctx context.Context, seed *corev1beta1.Seed) error {
	key := client.ObjectKey{Namespace: constants.GardenerSeedLeaseNamespace, Name: seed.Name}
	if r.last == nil {
		// It is created before it is read, as a gardenlet may create it at once, but read it only when its Seed is known to be there.
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		r.fill(lease, seed)
		err := r.gardenCache.Create(ctx, lease)
		if err == nil {
			r.last = lease
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Lease %q: %w", key, err)
		}
		if err := r.gardenCache.Get(ctx, key, lease); err != nil {
			return fmt.Errorf("read Lease %q: %w", key, err)
		}
		r.last = lease
	}
	lease := r.last.DeepCopy()
	r.fill(lease, seed)
	if err := r.gardenCache.Update(ctx, lease); err != nil {
		r.last = nil // it may have been changed or deleted
		return fmt.Errorf("update Lease %q: %w", key, err)
	}
	r.last = lease
	return nil
}

// fill sets holder, duration and renewal time of a Lease.
func (r *reconciler) fill(lease *coordinationv1.Lease, seed *corev1beta1.Seed) {
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: seed.Name, UID: seed.UID,
	}}
	lease.Spec.HolderIdentity = new(seed.Name)
	lease.Spec.LeaseDurationSeconds = new(int32(r.Period / time.Second))
	lease.Spec.RenewTime = new(metav1.NewMicroTime(r.Clock.Now()))
}

// report writes the condition.
func (r *reconciler) report(ctx context.Context, seed *corev1beta1.Seed) error {
	conditions, changed := kube.SetCondition(seed.Status.Conditions, corev1beta1.Condition{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "GardenletReady",
		Message: "Gardenlet is posting ready status.",
	}, r.Clock.Now())
	if !changed {
		return nil
	}
	after := seed.DeepCopy()
	after.Status.Conditions = conditions
	return r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(seed))
}
