package kube

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// StatusChanged drops update events that do not change what a controller itself writes to the status of its objects, which the function returns.
//
// These events correct what was decided by a cache that was behind. A pass writes a condition; the next one begins before the cache has that, gets the
// former result, and writes nothing, as the cache has it already. Only a pass with the newer cache can correct the object.
//
// Such a pass has no delay. What may be different in each pass, such as the text of an error, must be left out, or a failing pass would repeat at once.
func StatusChanged[T client.Object](written func(T) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isKind := e.ObjectOld.(T)
		after, same := e.ObjectNew.(T)
		return isKind && same && !apiequality.Semantic.DeepEqual(written(before), written(after))
	}}
}
