package guard

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// Add adds a controller that does nothing but keep the objects of a kind. The object is an empty one of that kind.
func Add(mgr manager.Manager, name string, concurrentSyncs int, object client.Object, uses ...Use) error {
	guard := Guard{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(name), Uses: uses}
	b := builder.ControllerManagedBy(mgr).Named(name).
		For(object, builder.WithPredicates(MetadataChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs})
	for _, use := range uses {
		// A new user changes nothing for what it uses: the finalizer is there already.
		b = b.Watches(use.User, watch.Mapped(use.Of), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
		}))
	}
	return b.Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		obj := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
		if err := mgr.GetClient().Get(ctx, req.NamespacedName, obj); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if err := guard.Keep(ctx, obj); err != nil {
			return kube.Result(fmt.Errorf("keep %s: %w", req, err))
		}
		return reconcile.Result{}, nil
	}))
}

// MetadataChanged lets events through after which an object may have to get its finalizer or can lose it.
func MetadataChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
