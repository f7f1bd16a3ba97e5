// Package registration remembers which Seeds have been registered. After a Seed is deleted, its gardenlet must not register it again with
// references that it chooses itself.
//
// It reads Seeds and writes the ConfigMap registered-seeds in the namespace garden. The names are removed where certificates for new
// gardenlets are approved.
package registration

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube/registeredseeds"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Seeds are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("seed-registration").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&corev1beta1.Seed{}, builder.WithPredicates(watch.NoUpdates())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{garden: mgr.GetClient(), gardenAPI: mgr.GetAPIReader()}))
}

type reconciler struct {
	garden client.Client
	// gardenAPI reads the ConfigMap, which is not worth a cache.
	gardenAPI client.Reader
}

// Reconcile remembers a Seed.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	known, err := registeredseeds.Contains(ctx, r.gardenAPI, seed.Name)
	if err != nil || known {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, registeredseeds.Add(ctx, r.garden, seed.Name)
}
