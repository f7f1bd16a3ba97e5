// Package orphan lets ManagedSeeds go whose Shoot does not exist any more: no gardenlet is responsible for them, so that their deletion would never end.
//
// It reads ManagedSeeds, Shoots and Seeds, and writes the finalizer of ManagedSeeds, and events.
package orphan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/managedseed"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

const name = "managedseed-orphan"

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ManagedSeeds are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(name)}
	inGarden := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace })
	gone := []predicate.Predicate{watch.NoCreates(), watch.NoUpdates()}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&seedmanagementv1alpha1.ManagedSeed{}, builder.WithPredicates(watch.NoDeletes(), watch.DeletionStarted())).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(managedseed.OfShoot(r.gardenCache)), builder.WithPredicates(append(gone, inGarden)...)).
		Watches(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, seed client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.GetName()}}}
		}), builder.WithPredicates(gone...)).
		Complete(r)
}

type reconciler struct {
	gardenCache client.Client
	// gardenAPI is for what must not exist: a cache may not have it yet.
	gardenAPI client.Reader
	recorder  events.EventRecorder
}

// Reconcile removes the finalizer of a ManagedSeed in deletion without Shoot and Seed: the gardenlet that it guards is gone with the Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp == nil || object.Spec.Shoot == nil || !controllerutil.ContainsFinalizer(object, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil
	}
	for _, needed := range []struct {
		key  client.ObjectKey
		into client.Object
	}{
		{client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.Shoot.Name}, &corev1beta1.Shoot{}},
		{client.ObjectKey{Name: object.Name}, &corev1beta1.Seed{}}, // an operator has to look: it may have Shoots
	} {
		if err := r.gardenAPI.Get(ctx, needed.key, needed.into); err == nil {
			return reconcile.Result{}, nil
		} else if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("read %T %q: %w", needed.into, needed.key, err)
		}
	}
	logf.FromContext(ctx).Info("Removing finalizer, as Shoot and Seed do not exist", "shoot", object.Spec.Shoot.Name)
	if err := kube.RemoveFinalizer(ctx, r.gardenCache, object, constants.FinalizerGardenerName); err != nil {
		return kube.Result(err)
	}
	r.recorder.Eventf(object, nil, corev1.EventTypeNormal, "ShootGone", "Delete",
		"Shoot %s and Seed %s do not exist: there is no gardenlet to delete", object.Spec.Shoot.Name, object.Name)
	return reconcile.Result{}, nil
}
