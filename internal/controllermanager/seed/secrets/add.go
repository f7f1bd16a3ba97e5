// Package secrets creates a namespace for each Seed in the garden, with copies of the Secrets that all gardenlets need, so that no
// gardenlet needs access to the Secrets of other seeds.
//
// It reads Seeds and the Secrets in the namespace "garden" that have the label gardener.cloud/role. It writes Namespaces
// "seed-<seed>" and Secrets in them. Source: concepts.txt, Seed controller, "Main" reconciler.
package secrets

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// shootRoles are the roles of Secrets that belong to a single shoot in the namespace "garden", such as one that becomes a seed. They
// contain credentials that no other seed may have.
var shootRoles = []string{
	constants.GardenRoleKubeconfig, constants.GardenRoleSSHKeyPair, constants.GardenRoleMonitoring,
	constants.GardenRoleCACluster, constants.GardenRoleCAClient, constants.GardenRoleCAKubelet,
}

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Seeds are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	selector, err := shared()
	if err != nil {
		return err
	}
	r := &reconciler{gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), selector: selector}
	return builder.ControllerManagedBy(mgr).Named("seed-secrets").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// Namespace and copies depend on the name of a Seed only.
		For(&corev1beta1.Seed{}, builder.WithPredicates(watch.NoUpdates())).
		// A user may change or delete the namespace or the copies. Metadata of namespaces is enough, as there is one for each project too.
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1beta1.Seed{}, handler.OnlyControllerOwner())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.seedsOf), builder.WithPredicates(
			predicate.ResourceVersionChangedPredicate{}, predicate.Funcs{
				CreateFunc: func(e event.CreateEvent) bool { return hasRole(e.Object) },
				UpdateFunc: func(e event.UpdateEvent) bool { return hasRole(e.ObjectOld) || hasRole(e.ObjectNew) },
				DeleteFunc: func(e event.DeleteEvent) bool { return hasRole(e.Object) },
			})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// shared selects the Secrets that all seeds get.
func shared() (labels.Selector, error) {
	exists, err := labels.NewRequirement(constants.GardenRole, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	notOfShoots, err := labels.NewRequirement(constants.GardenRole, selection.NotIn, shootRoles)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*exists, *notOfShoots), nil
}
