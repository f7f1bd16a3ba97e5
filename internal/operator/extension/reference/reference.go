// Package reference keeps Secrets and ConfigMaps from being deleted while Extensions refer to them.
//
// It reads Extensions and the metadata of Secrets and ConfigMaps in namespace garden, and writes the finalizer
// "gardener.cloud/reference-protection" of all of them. An Extension refers to them until its objects are deleted.
package reference

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

// protected are the kinds of objects that are kept.
var protected = []string{"Secret", "ConfigMap"}

// Values are what the controllers work with.
type Values struct {
	// ConcurrentSyncs is how many objects each of the controllers reconciles at the same time.
	ConcurrentSyncs int
	// Referenced reports whether an object of another kind, such as the Garden, refers to a Secret or ConfigMap of namespace garden: then its
	// finalizer stays. Without it, finalizers are removed only when an Extension stops to refer to an object.
	Referenced func(context.Context, extension.Reference) (bool, error)
}

// Add adds to a manager, whose cluster is the runtime cluster, the controller for Secrets and ConfigMaps, and the one for Extensions.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{runtimeCache: mgr.GetClient(), others: v.Referenced}
	b := builder.TypedControllerManagedBy[extension.Reference](mgr).Named("extension-reference-target").
		WithOptions(controller.TypedOptions[extension.Reference]{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		Watches(&operatorv1alpha1.Extension{}, toReferences(), builder.WithPredicates(changed()))
	for _, kind := range protected {
		// An object may be created after the Extension, or lose its finalizer. One that has the finalizer although no Extension refers to it may have it
		// for an object of another kind.
		b = b.WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(kind)), handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, obj client.Object) []extension.Reference {
				return []extension.Reference{{Kind: kind, Name: obj.GetName()}}
			}), builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == constants.GardenNamespace }),
			predicate.Funcs{
				CreateFunc: func(e event.CreateEvent) bool { return !guarded(e.Object) || v.Referenced != nil },
				UpdateFunc: func(e event.UpdateEvent) bool {
					return guarded(e.ObjectOld) != guarded(e.ObjectNew) && (!guarded(e.ObjectNew) || v.Referenced != nil)
				},
				DeleteFunc: func(event.DeleteEvent) bool { return false },
			}))
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("extension-reference").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&operatorv1alpha1.Extension{}, builder.WithPredicates(changed())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &extensionReconciler{runtimeCache: mgr.GetClient()}))
}

// changed drops updates of the status: only spec, deletion and finalizers count.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	}}
}

// toReferences enqueues what an Extension refers to, and what it referred to before an update.
func toReferences() handler.TypedEventHandler[client.Object, extension.Reference] {
	add := func(queue workqueue.TypedRateLimitingInterface[extension.Reference], objects ...client.Object) {
		for _, obj := range objects {
			for _, ref := range extension.References(obj.(*operatorv1alpha1.Extension)) { //nolint:forcetypeassert // the kind that is watched
				queue.Add(ref)
			}
		}
	}
	return handler.TypedFuncs[client.Object, extension.Reference]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[extension.Reference]) {
			add(queue, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[extension.Reference]) {
			add(queue, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[extension.Reference]) {
			add(queue, e.Object)
		},
	}
}

func guarded(obj client.Object) bool {
	return controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection)
}

// reconciler maintains the finalizer of Secrets and ConfigMaps.
type reconciler struct {
	runtimeCache client.Client
	others       func(context.Context, extension.Reference) (bool, error)
}

// Reconcile adds the finalizer to an object if Extensions refer to it, and removes it if no object does.
func (r *reconciler) Reconcile(ctx context.Context, ref extension.Reference) (reconcile.Result, error) {
	obj, key := kube.Metadata(corev1.SchemeGroupVersion.WithKind(ref.Kind)), client.ObjectKey{Namespace: constants.GardenNamespace, Name: ref.Name}
	if err := r.runtimeCache.Get(ctx, key, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	referenced, err := r.byExtensions(ctx, ref)
	if err != nil || referenced == guarded(obj) {
		return reconcile.Result{}, err
	}
	if referenced {
		if obj.DeletionTimestamp != nil {
			return reconcile.Result{}, nil // it cannot get the finalizer any more
		}
		return kube.Result(kube.AddFinalizer(ctx, r.runtimeCache, obj, constants.FinalizerReferenceProtection))
	}
	if r.others != nil {
		if referenced, err := r.others(ctx, ref); err != nil || referenced {
			return reconcile.Result{}, err
		}
	}
	return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, obj, constants.FinalizerReferenceProtection))
}

// byExtensions reports whether an Extension refers to an object.
func (r *reconciler) byExtensions(ctx context.Context, ref extension.Reference) (bool, error) {
	extensions := &operatorv1alpha1.ExtensionList{}
	if err := r.runtimeCache.List(ctx, extensions); err != nil {
		return false, fmt.Errorf("list Extensions: %w", err)
	}
	return Referenced(extensions.Items, ref), nil
}

// Referenced reports whether Extensions refer to a Secret or ConfigMap of namespace garden. The controller that protects what the Garden refers to
// asks before it removes the finalizer, which is the same.
func Referenced(extensions []operatorv1alpha1.Extension, ref extension.Reference) bool {
	return slices.ContainsFunc(extensions, func(e operatorv1alpha1.Extension) bool {
		return extension.InUse(&e) && slices.Contains(extension.References(&e), ref)
	})
}

// extensionReconciler maintains the finalizer of Extensions that refer to others.
type extensionReconciler struct {
	runtimeCache client.Client
}

// Reconcile adds the finalizer to an Extension if it refers to others, and removes it if it does not, or when its objects are deleted.
func (r *extensionReconciler) Reconcile(ctx context.Context, e *operatorv1alpha1.Extension) (reconcile.Result, error) {
	if extension.InUse(e) && len(extension.References(e)) > 0 {
		if e.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		return kube.Result(kube.AddFinalizer(ctx, r.runtimeCache, e, constants.FinalizerReferenceProtection))
	}
	return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, e, constants.FinalizerReferenceProtection))
}
