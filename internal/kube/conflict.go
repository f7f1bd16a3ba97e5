package kube

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryConflictAfter is when a pass is repeated that met a conflict. By then the cache has what somebody else wrote.
const retryConflictAfter = 200 * time.Millisecond

// Routine says whether an error is routine: a conflict, or an object that came or went since the cache heard of it. Of several errors,
// all have to be.
func Routine(err error) bool {
	var several interface{ Errors() []error }
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Errors(), func(err error) bool { return !Routine(err) })
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// Result is what a reconciler returns for an error. After a routine one, the pass is repeated soon, and nobody hears of it.
func Result(err error) (reconcile.Result, error) {
	if err != nil && Routine(err) {
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}
