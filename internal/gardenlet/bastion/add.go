// Package bastion creates, for each Bastion of the garden whose Shoot is on this seed, the Bastion of extensions.gardener.cloud, from which the
// extension of the provider starts the machine.
//
// Reads Bastions of the seed and their Shoots in the garden; writes finalizer and status of Bastions in the garden, and Bastions of extensions in
// control plane namespaces of the seed. One whose Bastion does not exist in the garden any more is deleted: members of the project may remove
// finalizers. That Bastions expire is up to gardener-controller-manager. Source: concepts.txt, gardenlet, "Bastion Controller".
package bastion

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"gardener.cloud/gardener/internal/shoot/technicalid"
)

// Values are what the controller works with.
type Values struct {
	// SeedName is the name of the seed.
	SeedName string
	// Garden is the cluster with the Bastions and Shoots. Its cache has the index of package technicalid.
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
		// Heartbeats do not count. The rest of the status does: what was written by a cache that was behind is corrected.
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &operationsv1alpha1.Bastion{},
			&handler.TypedEnqueueRequestForObject[*operationsv1alpha1.Bastion]{}, predicate.TypedFuncs[*operationsv1alpha1.Bastion]{
				UpdateFunc: func(e event.TypedUpdateEvent[*operationsv1alpha1.Bastion]) bool {
					return e.ObjectOld.Generation != e.ObjectNew.Generation || len(e.ObjectOld.Finalizers) != len(e.ObjectNew.Finalizers) ||
						e.ObjectOld.DeletionTimestamp == nil && e.ObjectNew.DeletionTimestamp != nil ||
						!apiequality.Semantic.DeepEqual(reported(e.ObjectOld), reported(e.ObjectNew))
				},
				// Deletions count: if someone else has removed the finalizer, the Bastion in the seed is left.
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

// reported is what the controller reports of a Bastion, without texts of errors, which may be others each time.
func reported(bastion *operationsv1alpha1.Bastion) any {
	status := bastion.Status.DeepCopy()
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.LastUpdateTime = (metav1.Time{}); c.Status == corev1beta1.ConditionFalse {
			c.Message = ""
		}
	}
	return []any{status.Conditions, status.Ingress, status.ObservedGeneration}
}

// forced reports whether the deletion of a Shoot is forced.
func forced(shoot *corev1beta1.Shoot) bool {
	return shoot.Annotations[constants.ConfirmationForceDeletion] == "true"
}

// bastionsOf returns requests for the Bastions of a Shoot.
func (r *reconciler) bastionsOf(ctx context.Context, shoot *corev1beta1.Shoot) []reconcile.Request {
	list := &operationsv1alpha1.BastionList{}
	if err := r.gardenCache.List(ctx, list, client.InNamespace(shoot.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing Bastions", "namespace", shoot.Namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if bastion := &list.Items[i]; bastion.Spec.ShootRef.Name == shoot.Name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bastion)})
		}
	}
	return requests
}

// bastionFor returns a request for the Bastion that one in the seed was created for, also if it does not exist any more.
func (r *reconciler) bastionFor(ctx context.Context, inSeed client.Object) []reconcile.Request {
	shoot, err := technicalid.Shoot(ctx, r.gardenCache, inSeed.GetNamespace())
	if err != nil || shoot == nil {
		return nil // the cache only fails when the process stops
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: shoot.Namespace, Name: inSeed.GetName()}}}
}
