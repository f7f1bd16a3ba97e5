// Package controllerdeployment keeps ControllerDeployments as long as ControllerRegistrations refer to them.
//
// It reads ControllerRegistrations, and writes a finalizer on ControllerDeployments. Source: concepts.txt, ControllerDeployment
// controller.
package controllerdeployment

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/kube"
)

// Add adds the controller to a manager.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	r := &reconciler{gardenClient: mgr.GetClient(), live: mgr.GetAPIReader()}
	return builder.ControllerManagedBy(mgr).Named("controllerdeployment").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		For(&gardencorev1.ControllerDeployment{}, builder.WithPredicates(predicate.NewPredicateFuncs(pending))).
		// A registration that goes, or names another deployment, can let a deployment go.
		Watches(&corev1beta1.ControllerRegistration{}, handler.Funcs{
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) { enqueue(e.ObjectOld, queue) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { enqueue(e.Object, queue) },
		}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenClient client.Client
	live         client.Reader
}

// pending tells whether something is to be done for a deployment, as far as it shows.
func pending(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), constants.FinalizerControllerDeployment) == (obj.GetDeletionTimestamp() != nil)
}

// Reconcile puts the finalizer on, or takes it off when the deployment is deleted and not in use.
func (r *reconciler) Reconcile(ctx context.Context, deployment *gardencorev1.ControllerDeployment) (reconcile.Result, error) {
	if !pending(deployment) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	if deployment.DeletionTimestamp == nil {
		log.Info("Adding finalizer")
		return kube.Result(kube.AddFinalizer(ctx, r.gardenClient, deployment, constants.FinalizerControllerDeployment))
	}
	// A cache could miss a registration that was made a moment ago; deletions are rare enough to ask the server.
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.live.List(ctx, registrations); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	for i := range registrations.Items {
		if slices.Contains(index.Deployments(&registrations.Items[i]), deployment.Name) {
			log.Info("Waiting for registration that refers to the deployment", "registration", registrations.Items[i].Name)
			return reconcile.Result{}, nil
		}
	}
	log.Info("Removing finalizer")
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenClient, deployment, constants.FinalizerControllerDeployment))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func enqueue(obj client.Object, queue queue) {
	for _, name := range index.Deployments(obj.(*corev1beta1.ControllerRegistration)) { //nolint:forcetypeassert // the kind that is watched
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}
