// Package lease tells the garden that a gardenlet works.
//
// It asks the API server of the seed for its health every few seconds, and if that is well, renews the Lease of the seed in the garden
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
	"k8s.io/utils/ptr"
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

// requestTimeout is the end of one request: what takes longer is no sign of health.
const requestTimeout = 10 * time.Second

// Values are what the controller works with.
type Values struct {
	// Garden is where the Seed is.
	Garden cluster.Cluster
	// SeedREST reaches the API server of the seed.
	SeedREST rest.Interface
	// Period is how often the Lease is renewed.
	Period time.Duration
	// Health hears what came of it.
	Health *Health
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenClient: v.Garden.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("seed-lease").
		// It comes back by itself every few seconds, changes do not matter.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Seed{}, &handler.TypedEnqueueRequestForObject[*corev1beta1.Seed]{},
			predicate.TypedFuncs[*corev1beta1.Seed]{
				UpdateFunc: func(event.TypedUpdateEvent[*corev1beta1.Seed]) bool { return false },
				DeleteFunc: func(event.TypedDeleteEvent[*corev1beta1.Seed]) bool { return false },
			})).
		Complete(r)
}

type reconciler struct {
	Values
	gardenClient client.Client
	// last is the Lease as it was last written, which saves reading it. Only one pass runs at a time.
	last *coordinationv1.Lease
}

// Reconcile renews the Lease if the seed is well.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.gardenClient.Get(ctx, req.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// The pace stays the same after an error: a growing distance would be taken for silence.
	result := reconcile.Result{RequeueAfter: r.Period}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := r.SeedREST.Get().AbsPath("/healthz").Do(ctx).Error(); err != nil {
		r.Health.Set(false)
		logf.FromContext(ctx).Error(err, "Not renewing Lease because the API server of the seed is not well")
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
		lease := &coordinationv1.Lease{}
		err := r.gardenClient.Get(ctx, key, lease)
		if apierrors.IsNotFound(err) {
			lease.Namespace, lease.Name = key.Namespace, key.Name
			r.fill(lease, seed)
			if err = r.gardenClient.Create(ctx, lease); err == nil {
				r.last = lease
			}
		}
		if err != nil {
			return fmt.Errorf("create Lease %q: %w", key, err)
		}
		if r.last != nil {
			return nil
		}
		r.last = lease
	}
	lease := r.last.DeepCopy()
	r.fill(lease, seed)
	if err := r.gardenClient.Update(ctx, lease); err != nil {
		r.last = nil // somebody else wrote or deleted it
		return fmt.Errorf("update Lease %q: %w", key, err)
	}
	r.last = lease
	return nil
}

// fill sets what the gardenlet says in a Lease.
func (r *reconciler) fill(lease *coordinationv1.Lease, seed *corev1beta1.Seed) {
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: seed.Name, UID: seed.UID,
	}}
	lease.Spec.HolderIdentity = ptr.To(seed.Name)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(r.Period / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(r.Clock.Now()))
}

// report sets the condition.
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
	return r.gardenClient.Status().Patch(ctx, after, client.StrategicMergeFrom(seed))
}
