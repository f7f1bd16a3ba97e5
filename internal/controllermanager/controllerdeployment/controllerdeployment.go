// Package controllerdeployment keeps ControllerDeployments while ControllerRegistrations refer to them.
//
// It reads ControllerRegistrations, and writes a finalizer on ControllerDeployments. Source: concepts.txt, ControllerDeployment
// controller.
package controllerdeployment

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ControllerDeployments are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader()}
	return builder.ControllerManagedBy(mgr).Named("controllerdeployment").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&gardencorev1.ControllerDeployment{}, builder.WithPredicates(predicate.NewPredicateFuncs(pending))).
		// A deployment in deletion waits until no registration refers to it any more.
		Watches(&corev1beta1.ControllerRegistration{}, watch.ChangedReferences(references.ControllerDeployment), builder.WithPredicates(
			watch.NoCreates(), predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

type reconciler struct {
	gardenCache client.Client
	gardenAPI   client.Reader
}

// pending reports whether the finalizer of a deployment has to be added, or may have to be removed.
func pending(obj client.Object) bool {
	return slices.Contains(obj.GetFinalizers(), constants.FinalizerControllerDeployment) == (obj.GetDeletionTimestamp() != nil)
}

// Reconcile adds the finalizer, or removes it when the deployment is being deleted and no registration refers to it.
func (r *reconciler) Reconcile(ctx context.Context, deployment *gardencorev1.ControllerDeployment) (reconcile.Result, error) {
	if !pending(deployment) {
		return reconcile.Result{}, nil
	}
	log := logf.FromContext(ctx)
	if deployment.DeletionTimestamp == nil {
		log.Info("Adding finalizer")
		return kube.Result(kube.AddFinalizer(ctx, r.gardenCache, deployment, constants.FinalizerControllerDeployment))
	}
	// The cache may miss a registration that was created a moment ago. Deletions are rare enough to read from the API server.
	ref := references.RefOf(references.ControllerDeployment, deployment)
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.gardenAPI.List(ctx, registrations); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	for i := range registrations.Items {
		if slices.Contains(references.Of(&registrations.Items[i]), ref) {
			log.Info("Waiting for registration that refers to the deployment", "registration", registrations.Items[i].Name)
			return reconcile.Result{}, nil
		}
	}
	log.Info("Removing finalizer")
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, deployment, constants.FinalizerControllerDeployment))
}
