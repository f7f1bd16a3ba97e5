// Package referenceprotection keeps Secrets and ConfigMaps from being deleted while Shoots, Seeds, ControllerDeployments or Plants refer to them.
//
// It reconciles the objects that are referred to: a Secret that all Shoots of a project refer to is reconciled once, not once per Shoot.
// There is one controller for all kinds that refer to them, as the finalizer may be removed only if no object of any kind does. Reads
// Shoots, Seeds, ControllerDeployments and Plants, and metadata of Secrets and ConfigMaps; writes the finalizer
// "gardener.cloud/reference-protection" of all of them. Source: concepts.txt, Shoot controller, "Reference".
package referenceprotection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

var (
	// protected are the kinds of objects that are kept, all of the core group.
	protected = []string{references.Secret, references.ConfigMap}
	// referrers are empty objects of the kinds that refer to them. These objects have the finalizer too, while they refer to any.
	referrers = []client.Object{&corev1beta1.Shoot{}, &corev1beta1.Seed{}, &gardencorev1.ControllerDeployment{}, &corev1beta1.Plant{}}
)

// Values are what the controllers work with.
type Values struct {
	// ConcurrentSyncs is how many objects each of the controllers reconciles at the same time.
	ConcurrentSyncs int
}

// Add adds to a manager the controller for Secrets and ConfigMaps, and one for each kind that refers to them.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{gardenCache: mgr.GetClient()}
	b := builder.TypedControllerManagedBy[references.Ref](mgr).Named("reference").
		WithOptions(controller.TypedOptions[references.Ref]{MaxConcurrentReconciles: v.ConcurrentSyncs})
	for _, referrer := range referrers {
		b = b.Watches(referrer, watch.Mapped(protectedBy))
	}
	for _, kind := range protected {
		// An object may be created after those that refer to it, lose its finalizer, or have kept it although no object refers to it any more.
		b = b.WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(kind)), watch.Every(func(obj client.Object) []references.Ref {
			return []references.Ref{references.RefOf(kind, obj)}
		}), builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return r.concerns(kind, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) && r.concerns(kind, e.ObjectNew)
			},
		}))
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	for _, referrer := range referrers {
		if err := addReferrer(mgr, referrer, v.ConcurrentSyncs); err != nil {
			return err
		}
	}
	return nil
}

// addReferrer adds the controller for the finalizer of the objects of a kind that refer to others.
func addReferrer(mgr manager.Manager, kind client.Object, concurrentSyncs int) error {
	gvk, err := apiutil.GVKForObject(kind, mgr.GetScheme())
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named(strings.ToLower(gvk.Kind)+"-reference").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		For(kind, builder.WithPredicates(watch.NoDeletes(), predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return !settled(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return !settled(e.ObjectNew) },
		})).
		Complete(&referrerReconciler{gardenCache: mgr.GetClient(), kind: kind})
}

// protectedBy returns the Secrets and ConfigMaps that an object refers to.
func protectedBy(referrer client.Object) []references.Ref {
	return references.Of(referrer, protected...)
}
