// Package bastion creates, for each Bastion of the garden whose Shoot is on this seed, the Bastion of extensions.gardener.cloud, from which the
// extension of the provider starts the machine.
//
// Reads Bastions of the seed and their Shoots in the garden; writes finalizer and status of Bastions in the garden, and Bastions of extensions in
// control plane namespaces of the seed. That Bastions expire is up to gardener-controller-manager. Source: concepts.txt, gardenlet, "Bastion
// Controller".
package bastion

import (
	"context"
	"slices"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Bastions and Shoots.
	Garden cluster.Cluster
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// ConcurrentSyncs is how many Bastions are reconciled at the same time.
	ConcurrentSyncs int
	// Clock is for conditions.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), gardenAPI: v.Garden.GetAPIReader(), seedCache: mgr.GetClient()}
	return builder.ControllerManagedBy(mgr).Named("bastion").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// Heartbeats change the status only.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &operationsv1alpha1.Bastion{},
			&handler.TypedEnqueueRequestForObject[*operationsv1alpha1.Bastion]{}, predicate.TypedFuncs[*operationsv1alpha1.Bastion]{
				UpdateFunc: func(e event.TypedUpdateEvent[*operationsv1alpha1.Bastion]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || len(e.ObjectOld.Finalizers) != len(e.ObjectNew.Finalizers) ||
						e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil
				},
				DeleteFunc: func(event.TypedDeleteEvent[*operationsv1alpha1.Bastion]) bool { return false },
			})).
		// A Bastion waits until its Shoot has a control plane, and its deletion may be forced. A Shoot that is new to the seed may have Bastions.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.Shoot{}, handler.TypedEnqueueRequestsFromMapFunc(r.bastionsOf),
			predicate.TypedFuncs[*corev1beta1.Shoot]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.Shoot]) bool {
					return e.ObjectOld.Status.TechnicalID != e.ObjectNew.Status.TechnicalID || forced(e.ObjectOld) != forced(e.ObjectNew)
				},
			})).
		Watches(&extensionsv1alpha1.Bastion{}, handler.EnqueueRequestsFromMapFunc(r.bastionFor)).
		Complete(r)
}

// forced reports whether the deletion of a Shoot is forced.
func forced(shoot *corev1beta1.Shoot) bool {
	return shoot.Annotations[constants.ConfirmationForceDeletion] == "true"
}

// bastionsOf returns requests for the Bastions of a Shoot.
func (r *reconciler) bastionsOf(ctx context.Context, shoot *corev1beta1.Shoot) []reconcile.Request {
	return r.requests(ctx, func(b *operationsv1alpha1.Bastion) bool { return b.Spec.ShootRef.Name == shoot.Name }, shoot.Namespace)
}

// bastionFor returns a request for the Bastion that one in the seed was created for.
func (r *reconciler) bastionFor(ctx context.Context, inSeed client.Object) []reconcile.Request {
	shoots := &corev1beta1.ShootList{}
	if err := r.gardenCache.List(ctx, shoots, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache only fails when the process stops
	}
	i := slices.IndexFunc(shoots.Items, func(s corev1beta1.Shoot) bool { return s.Status.TechnicalID == inSeed.GetNamespace() })
	if i < 0 {
		return nil
	}
	shoot := &shoots.Items[i]
	return r.requests(ctx, func(b *operationsv1alpha1.Bastion) bool {
		return b.Name == inSeed.GetName() && b.Spec.ShootRef.Name == shoot.Name
	}, shoot.Namespace)
}

func (r *reconciler) requests(ctx context.Context, selected func(*operationsv1alpha1.Bastion) bool, namespace string) []reconcile.Request {
	list := &operationsv1alpha1.BastionList{}
	if err := r.gardenCache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Bastions", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if selected(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
