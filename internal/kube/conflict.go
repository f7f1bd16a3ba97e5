package kube

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryConflictAfter is when a pass is repeated that met a conflict. By then the cache has what somebody else wrote.
const retryConflictAfter = 200 * time.Millisecond

// Result is what a reconciler returns for an error. A conflict is routine, as is an object that came or went since the cache heard of
// it: the pass is repeated soon, and nobody hears of it.
func Result(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}
