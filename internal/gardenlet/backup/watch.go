package backup

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// LastRetry is the longest delay after an error: its cause may be gone, and a seed or a shoot wait.
const LastRetry = time.Minute

// Changed filters out changes of the status, which the controller itself writes. It passes changes of the spec and of the given annotations,
// requested operations, and deletions.
func Changed[T client.Object](annotations ...string) predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || after[constants.GardenerOperation] != "" ||
				e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil ||
				slices.ContainsFunc(annotations, func(key string) bool { return before[key] != after[key] })
		},
	}
}
