package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// NoCreates drops create events, which include one for each object at the start.
func NoCreates() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// NoUpdates drops update events.
func NoUpdates() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// NoDeletes drops delete events.
func NoDeletes() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}
}

// Updated drops update events for which a function of the object before and after the update returns false.
func Updated[T client.Object](counts func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return counts(e.ObjectOld.(T), e.ObjectNew.(T)) //nolint:forcetypeassert // the kind that is watched
	}}
}

// DeletionStarted drops update events other than those that set the deletion timestamp.
func DeletionStarted() predicate.Predicate {
	return Updated(func(before, after client.Object) bool {
		return before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil
	})
}
