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

// Routine says whether an error is routine: a conflict, or an object that came or went since the cache heard of it. A namespace that is
// missing is not: it may stay away. Of several errors, all have to be routine.
func Routine(err error) bool {
	return each(err, func(err error) bool {
		var status apierrors.APIStatus
		if apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
			return false
		}
		return contested(err) || apierrors.IsNotFound(err)
	})
}

// Contested says whether an error only tells that somebody else was quicker, so that the next pass finds what it needs. What is missing may
// stay away: who reports to people says so. Of several errors, all have to be of this kind.
func Contested(err error) bool { return each(err, contested) }

func contested(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// each applies a check to an error, or to all of those that it consists of.
func each(err error, is func(error) bool) bool {
	several := func(err error) bool { return each(err, is) }
	var aggregate interface{ Errors() []error }
	if errors.As(err, &aggregate) {
		return all(aggregate.Errors(), several)
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return all(joined.Unwrap(), several)
	}
	return is(err)
}

func all(errs []error, is func(error) bool) bool {
	return !slices.ContainsFunc(errs, func(err error) bool { return !is(err) })
}

// Result is what a reconciler returns for an error. After a routine one, the pass is repeated soon, and nobody hears of it.
func Result(err error) (reconcile.Result, error) {
	if err != nil && Routine(err) {
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}
