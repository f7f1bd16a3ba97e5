// Package managedseed labels ManagedSeeds with the seeds of their Shoot when it is scheduled or moves: gardenlets only see what has the label of their seed.
// gardener-apiserver sets the same labels, but only when a ManagedSeed is written.
//
// It reads Shoots, and writes labels of ManagedSeeds.
package managedseed

import (
	"context"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many ManagedSeeds are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	inGarden := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace })
	return builder.ControllerManagedBy(mgr).Named("managedseed-label").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&seedmanagementv1alpha1.ManagedSeed{}, builder.WithPredicates(watch.NoDeletes(), watch.NoUpdates())).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(OfShoot(r.gardenCache)), builder.WithPredicates(inGarden, watch.NoDeletes(),
			watch.Updated(func(before, after *corev1beta1.Shoot) bool { return !maps.Equal(labelsOf(before), labelsOf(after)) }))).
		Complete(r)
}

type reconciler struct{ gardenCache client.Client }

// OfShoot maps a Shoot to its ManagedSeeds, which it reads in the garden.
func OfShoot(garden client.Reader) handler.MapFunc {
	return func(ctx context.Context, shoot client.Object) []reconcile.Request {
		list := &seedmanagementv1alpha1.ManagedSeedList{}
		if err := garden.List(ctx, list, client.InNamespace(shoot.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(ctx).Error(err, "Listing ManagedSeeds")
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if object := &list.Items[i]; object.Spec.Shoot != nil && object.Spec.Shoot.Name == shoot.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		}
		return requests
	}
}

// Reconcile labels a ManagedSeed.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	object, shoot := &seedmanagementv1alpha1.ManagedSeed{}, &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, object); err != nil || object.Spec.Shoot == nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.Shoot.Name}, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := kube.PatchMetadata(ctx, r.gardenCache, object, func(o *metav1.PartialObjectMetadata) {
		maps.DeleteFunc(o.Labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.PrefixSeedName) })
		for key, value := range labelsOf(shoot) {
			metav1.SetMetaDataLabel(&o.ObjectMeta, key, value)
		}
	}); err != nil {
		return kube.Result(fmt.Errorf("label ManagedSeed %q: %w", object.Name, err))
	}
	return reconcile.Result{}, nil
}

// labelsOf returns the labels for the seeds of a Shoot: one, or both while it moves from one to the other.
func labelsOf(shoot *corev1beta1.Shoot) map[string]string {
	labels := map[string]string{}
	for _, name := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if seed := ptr.Deref(name, ""); seed != "" {
			labels[constants.PrefixSeedName+seed] = "true"
		}
	}
	return labels
}
