// Package reference keeps Secrets and ConfigMaps from being deleted while the Garden refers to them.
//
// It reconciles the objects that are referred to. A Secret that a Garden refers to no longer stays protected while BackupBuckets, BackupEntries or DNSRecords of
// class garden name it, as they cannot be deleted without it. Reads Gardens, these objects, and metadata of Secrets and ConfigMaps in the namespace "garden"; writes
// the finalizer "gardener.cloud/reference-protection" of all of them. Source: concepts.txt, gardener-operator, "Reference" reconciler.
package reference

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// Values are what the controllers work with.
type Values struct {
	// Referenced reports whether an object of another kind, such as an Extension, refers to a Secret or ConfigMap: then the finalizer, which is the
	// same for all, stays. It may be nil.
	Referenced func(context.Context, Ref) (bool, error)
}

// Add adds to a manager, whose cluster is the runtime cluster, the controllers for Secrets and ConfigMaps, and the one for Gardens.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, runtimeCache: mgr.GetClient(), runtimeAPI: mgr.GetAPIReader()}
	b := builder.TypedControllerManagedBy[Ref](mgr).Named("garden-reference-target").
		Watches(&operatorv1alpha1.Garden{}, enqueueReferences(), builder.WithPredicates(changed()))
	for _, kind := range []string{secret, configMap} {
		// An object may be created after the Garden, lose its finalizer, or have kept it although no Garden refers to it any more.
		b = b.WatchesMetadata(kube.Metadata(corev1.SchemeGroupVersion.WithKind(kind)), handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, obj client.Object) []Ref { return []Ref{{kind, obj.GetName()}} },
		), builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == namespace }), predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return guarded(e.Object) || r.mayConcern(kind, e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return guarded(e.ObjectOld) != guarded(e.ObjectNew) },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}))
	}
	if err := errors.Join(b.Complete(r), addUsers(mgr, r)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("garden-reference").
		For(&operatorv1alpha1.Garden{}, builder.WithPredicates(changed())).
		Complete(&gardenReconciler{runtimeCache: mgr.GetClient()})
}

// changed drops updates of the status: only spec, deletion and finalizers count. A deletion changes the generation too.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	}}
}

// enqueueReferences enqueues what a Garden refers to, and what it referred to before an update.
func enqueueReferences() handler.TypedEventHandler[client.Object, Ref] {
	add := func(queue workqueue.TypedRateLimitingInterface[Ref], objects ...client.Object) {
		for _, obj := range objects {
			for _, ref := range Of(obj.(*operatorv1alpha1.Garden)) { //nolint:forcetypeassert // the kind that is watched
				queue.Add(ref)
			}
		}
	}
	return handler.TypedFuncs[client.Object, Ref]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[Ref]) {
			add(queue, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[Ref]) {
			add(queue, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[Ref]) {
			add(queue, e.Object)
		},
	}
}

func guarded(obj client.Object) bool {
	return controllerutil.ContainsFinalizer(obj, constants.FinalizerReferenceProtection)
}
