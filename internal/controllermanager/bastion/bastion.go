// Package bastion deletes Bastions that nobody needs any more.
//
// Reads Bastions and Shoots, deletes Bastions; the gardenlet then removes their machines. Source: concepts.txt, "Bastion Controller".
package bastion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/index"
)

// Add adds the controller.
func Add(mgr manager.Manager, config *controllermanagerconfigv1alpha1.BastionControllerConfiguration, clk clock.Clock) error {
	r := &reconciler{gardenClient: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clk, maxLifetime: config.MaxLifetime.Duration}
	return builder.ControllerManagedBy(mgr).Named("bastion").
		WithOptions(controller.Options{MaxConcurrentReconciles: *config.ConcurrentSyncs}).
		For(&operationsv1alpha1.Bastion{}, builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.ofShoot), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, // Bastions come with events of their own
			UpdateFunc: func(e event.UpdateEvent) bool {
				before, after := e.ObjectOld.(*corev1beta1.Shoot), e.ObjectNew.(*corev1beta1.Shoot) //nolint:forcetypeassert // the kind that is watched
				return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
					value(before.Spec.SeedName) != value(after.Spec.SeedName)
			},
		})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenClient client.Client
	live         client.Reader
	clock        clock.Clock
	maxLifetime  time.Duration
}

// ofShoot returns requests for the Bastions of a Shoot.
func (r *reconciler) ofShoot(ctx context.Context, shoot client.Object) []reconcile.Request {
	bastions := &operationsv1alpha1.BastionList{}
	options := []client.ListOption{
		client.InNamespace(shoot.GetNamespace()), client.MatchingFields{index.BastionShoot: shoot.GetName()}, client.UnsafeDisableDeepCopy,
	}
	if err := r.gardenClient.List(ctx, bastions, options...); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Bastions")
		return nil
	}
	var requests []reconcile.Request
	for i := range bastions.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bastions.Items[i])})
	}
	return requests
}

// Reconcile deletes a Bastion that is not needed, or comes back when its time is over.
func (r *reconciler) Reconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion) (reconcile.Result, error) {
	if bastion.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	reason, recheckIn, err := r.reason(ctx, r.gardenClient, bastion)
	if err == nil && reason != "" {
		// The cache may have seen the Bastion, and not yet its Shoot.
		reason, recheckIn, err = r.reason(ctx, r.live, bastion)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason == "" {
		return reconcile.Result{RequeueAfter: recheckIn}, nil
	}
	logf.FromContext(ctx).Info("Deleting Bastion", "reason", reason)
	err = r.gardenClient.Delete(ctx, bastion, client.Preconditions{UID: &bastion.UID})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete: %w", err)
	}
	return reconcile.Result{}, nil
}

// reason returns what decide makes of the Shoot that a reader has.
func (r *reconciler) reason(ctx context.Context, from client.Reader, bastion *operationsv1alpha1.Bastion) (reason string, recheckIn time.Duration, err error) {
	shoot := &corev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}
	if err := from.Get(ctx, key, shoot, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		shoot = nil
	} else if err != nil {
		return "", 0, fmt.Errorf("read Shoot %q: %w", key, err)
	}
	reason, recheckIn = decide(bastion, shoot, r.clock.Now(), r.maxLifetime)
	return reason, recheckIn, nil
}

// decide returns why a Bastion is not needed any more, or nothing and when to look again. The Shoot is nil if it is gone.
func decide(
	bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot, now time.Time, maxLifetime time.Duration,
) (reason string, recheckIn time.Duration) {
	switch {
	case shoot == nil:
		return "its shoot is gone", 0
	case shoot.DeletionTimestamp != nil:
		return "its shoot is being deleted", 0
	case bastion.Spec.SeedName != nil && value(bastion.Spec.SeedName) != value(shoot.Spec.SeedName):
		return "its shoot moved to another seed", 0
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

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
