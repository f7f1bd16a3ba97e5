// Package guard keeps objects of the API while others use them.
//
// A guarded object has the finalizer "gardener" from the start. When it is being deleted, the finalizer stays until no other object
// refers to it, according to package references.
package guard

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gardener.cloud/gardener/internal/controllermanager/watch"
)

// Values are what a controller works with that guards the objects of a kind and does nothing else.
type Values struct {
	// Name is the name of the controller, in its events, logs and metrics.
	Name string
	// ConcurrentSyncs is how many objects are reconciled at the same time.
	ConcurrentSyncs int
	// Object is an empty object of the kind that is guarded.
	Object client.Object
	// Users are empty objects of the kinds that can refer to such objects.
	Users []client.Object
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	gvk, err := apiutil.GVKForObject(v.Object, mgr.GetScheme())
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).Named(v.Name).
		For(v.Object, builder.WithPredicates(MetadataChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs})
	for _, user := range v.Users {
		// A new user changes nothing for the object that it uses, which has the finalizer already.
		b = b.Watches(user, watch.ChangedReferences(gvk.Kind), builder.WithPredicates(watch.NoCreates()))
	}
	return b.Complete(&reconciler{
		gardenCache: mgr.GetClient(), object: v.Object,
		guard: Guard{GardenCache: mgr.GetClient(), Recorder: mgr.GetEventRecorder(v.Name), Users: v.Users},
	})
}

// MetadataChanged drops update events after which an object neither has to get its finalizer nor can lose it.
func MetadataChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
