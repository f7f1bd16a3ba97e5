// Package reference keeps Secrets and ConfigMaps from being deleted while others, such as Shoots, refer to them.
//
// It reconciles what is referred to, not what refers: a Secret that all Shoots of a project refer to is looked at once. There is one
// controller for all kinds that refer, as the finalizer can only be taken away by somebody who knows of all of them. Reads what refers,
// and metadata of Secrets and ConfigMaps; writes the finalizer "gardener.cloud/reference-protection" of both. Source: concepts.txt,
// Shoot controller, "Reference".
package reference

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// kinds are the kinds of objects that are kept.
var kinds = map[string]schema.GroupVersionKind{
	uses.Secret:    corev1.SchemeGroupVersion.WithKind(uses.Secret),
	uses.ConfigMap: corev1.SchemeGroupVersion.WithKind(uses.ConfigMap),
}

// Referrer is a kind of objects that refer to Secrets and ConfigMaps.
type Referrer struct {
	// Object is an empty object of the kind, and List an empty list.
	Object client.Object
	List   client.ObjectList
	// Index is the name of the index that holds the objects by the keys of what Refs returns.
	Index string
	// Refs returns what an object refers to. It returns nothing when the object has no need for it any more.
	Refs func(client.Object) []uses.Ref
}

// Values are the settings of the controllers.
type Values struct {
	// ConcurrentSyncs is how many objects are worked on at the same time.
	ConcurrentSyncs int
	// Referrers are the kinds that refer. The objects of each get the finalizer too, for as long as they refer to something.
	Referrers []Referrer
}

// Add adds a controller for what is referred to, and one for each kind that refers.
func Add(mgr manager.Manager, values Values) error {
	r := &reconciler{client: mgr.GetClient(), referrers: values.Referrers}
	b := builder.TypedControllerManagedBy[uses.Ref](mgr).Named("reference").
		WithOptions(controller.TypedOptions[uses.Ref]{MaxConcurrentReconciles: values.ConcurrentSyncs})
	for _, referrer := range values.Referrers {
		b = b.Watches(referrer.Object, watch.Mapped(referrer.Refs))
	}
	for kind, gvk := range kinds {
		// An object may come after what refers to it, lose its finalizer, or have kept it although nobody refers to it any more.
		b = b.WatchesMetadata(kube.Metadata(gvk), watch.Every(func(obj client.Object) []uses.Ref {
			return []uses.Ref{{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return r.concerns(kind, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) && r.concerns(kind, e.ObjectNew)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}))
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	for _, referrer := range values.Referrers {
		if err := r.addReferrer(mgr, referrer, values.ConcurrentSyncs); err != nil {
			return err
		}
	}
	return nil
}

type reconciler struct {
	client    client.Client
	referrers []Referrer
}

// Reconcile gives an object the finalizer if somebody refers to it, and takes it away otherwise.
func (r *reconciler) Reconcile(ctx context.Context, ref uses.Ref) (reconcile.Result, error) {
	obj := kube.Metadata(kinds[ref.Kind])
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	needed, err := r.needed(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	if needed && obj.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // too late to keep it, and too early to let it go
	}
	if err := keep(ctx, r.client, obj, needed); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{}, nil
}

// needed says whether somebody refers to an object.
func (r *reconciler) needed(ctx context.Context, ref uses.Ref) (bool, error) {
	for _, referrer := range r.referrers {
		list := referrer.List.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
		options := []client.ListOption{client.MatchingFields{referrer.Index: ref.Key()}, client.Limit(1), client.UnsafeDisableDeepCopy}
		if err := r.client.List(ctx, list, options...); err != nil {
			return false, fmt.Errorf("look for what refers to %s: %w", ref.Key(), err)
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// concerns says whether an object has the finalizer or should have, as far as the cache knows. What it does not know yet comes with an
// event of its own.
func (r *reconciler) concerns(kind string, obj client.Object) bool {
	if controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection) {
		return true
	}
	needed, err := r.needed(context.Background(), uses.Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()})
	return err != nil || needed
}

// keep gives an object the finalizer or takes it away.
func keep(ctx context.Context, c client.Client, obj client.Object, wanted bool) error {
	change := controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	return kube.PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) { change(o, constants.FinalizerReferenceProtection) })
}
