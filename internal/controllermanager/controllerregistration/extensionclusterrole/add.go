// Package extensionclusterrole grants extensions permissions in the garden: it binds labelled ClusterRoles to the ServiceAccounts in the
// namespaces of seeds that the ClusterRole selects.
//
// It reads ClusterRoles and the metadata of ServiceAccounts, and writes a ClusterRoleBinding with the name of the ClusterRole.
// Source: concepts.txt, ControllerRegistration controller, "Extension ClusterRole" reconciler.
package extensionclusterrole

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/controllermanager/watch"
)

const (
	// labelCustomPermissions is "true" on ClusterRoles for extensions.
	labelCustomPermissions = "authorization.gardener.cloud/custom-extensions-permissions"
	// annotationSelector is the label selector for ServiceAccounts, in JSON.
	annotationSelector = "authorization.gardener.cloud/extensions-serviceaccount-selector"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ClusterRoles are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("controllerregistration-extension-clusterrole").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&rbacv1.ClusterRole{}, builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{ // the binding is deleted with its owner
			CreateFunc: func(e event.CreateEvent) bool { return marked(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return marked(e.ObjectOld) || marked(e.ObjectNew) },
		})).
		Owns(&rbacv1.ClusterRoleBinding{}).
		WatchesMetadata(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(
			predicate.NewPredicateFuncs(func(obj client.Object) bool { return inSeedNamespace(obj.GetNamespace()) }),
			predicate.LabelChangedPredicate{})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
