// Package bastion deletes Bastions that are not needed any more.
//
// Reads Bastions and Shoots, deletes Bastions; the gardenlet then removes their machines. Source: concepts.txt, "Bastion Controller".
package bastion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Bastions are reconciled at the same time.
	ConcurrentSyncs int
	// MaxLifetime is how old a Bastion may become, however often its heartbeat is renewed.
	MaxLifetime time.Duration
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("bastion").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&operationsv1alpha1.Bastion{}, builder.WithPredicates(watch.NoDeletes())).
		// A Bastion causes a create event of its own.
		Watches(&corev1beta1.Shoot{}, watch.Referrers(mgr.GetClient(), references.Shoot, &operationsv1alpha1.Bastion{}), builder.WithPredicates(
			watch.NoCreates(), watch.Updated(func(before, after *corev1beta1.Shoot) bool {
				return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
					ptr.Deref(before.Spec.SeedName, "") != ptr.Deref(after.Spec.SeedName, "") ||
					before.Spec.Provider.SSHAccessEnabled() != after.Spec.Provider.SSHAccessEnabled()
			}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{Values: v, gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader()}))
}

type reconciler struct {
	Values
	gardenCache client.Client
	gardenAPI   client.Reader
}

// Reconcile deletes a Bastion that is not needed, or requeues it for when its lifetime is over.
func (r *reconciler) Reconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion) (reconcile.Result, error) {
	if bastion.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	reason, recheckIn, err := r.reason(ctx, r.gardenCache, bastion)
	if err == nil && reason != "" {
		// The cache may hold the Bastion before its Shoot.
		reason, recheckIn, err = r.reason(ctx, r.gardenAPI, bastion)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason == "" {
		return reconcile.Result{RequeueAfter: recheckIn}, nil
	}
	logf.FromContext(ctx).Info("Deleting Bastion", "reason", reason)
	err = r.gardenCache.Delete(ctx, bastion, client.Preconditions{UID: &bastion.UID})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete: %w", err)
	}
	return reconcile.Result{}, nil
}

// reason returns what decide returns for the Shoot as a reader has it.
func (r *reconciler) reason(ctx context.Context, from client.Reader, bastion *operationsv1alpha1.Bastion) (reason string, recheckIn time.Duration, err error) {
	shoot := &corev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}
	if err := from.Get(ctx, key, shoot, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		shoot = nil
	} else if err != nil {
		return "", 0, fmt.Errorf("read Shoot %q: %w", key, err)
	}
	reason, recheckIn = decide(bastion, shoot, r.Clock.Now(), r.MaxLifetime)
	return reason, recheckIn, nil
}

// decide returns why a Bastion is not needed any more, or nothing and when to check again. The Shoot is nil if it does not exist.
func decide(
	bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot, now time.Time, maxLifetime time.Duration,
) (reason string, recheckIn time.Duration) {
	switch {
	case shoot == nil:
		return "its shoot does not exist any more", 0
	case shoot.DeletionTimestamp != nil:
		return "its shoot is being deleted", 0
	case bastion.Spec.SeedName != nil && *bastion.Spec.SeedName != ptr.Deref(shoot.Spec.SeedName, ""):
		return "its shoot was migrated to another seed", 0
	case !shoot.Spec.Provider.SSHAccessEnabled():
		return "nodes of its shoot allow no SSH access", 0
	}
	end := bastion.CreationTimestamp.Add(maxLifetime)
	if !now.Before(end) {
		return "it has reached its maximum lifetime", 0
	}
	if expiration := bastion.Status.ExpirationTimestamp; expiration != nil {
		if !now.Before(expiration.Time) {
			return "it has expired", 0
		}
		if expiration.Time.Before(end) {
			end = expiration.Time
		}
	}
	return "", end.Sub(now)
}
