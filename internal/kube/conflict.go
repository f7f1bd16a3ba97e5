package kube

import (
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retryConflictAfter is when a reconciliation is repeated after a conflict. By then the cache has the other client's write.
const retryConflictAfter = 200 * time.Millisecond

// Routine says whether an error passes when reconciliation is repeated: a conflict, or an object that was created or deleted since the cache
// was last updated. A missing namespace does not count, as it may stay missing. Of several errors, all have to be routine.
func Routine(err error) bool {
	return each(err, func(err error) bool {
		var status apierrors.APIStatus
		if apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces" {
			return false
		}
		return contested(err) || apierrors.IsNotFound(err)
	})
}

// Contested says whether an error only means that another client wrote first: a conflict, or an object that exists already. A missing object
// does not count, so this is the check of controllers that report errors to users. Of several errors, all have to be of this kind.
func Contested(err error) bool { return each(err, contested) }

func contested(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// each says whether a check holds for an error, or for all errors that it consists of.
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

// Reported joins an error of a reconciliation with that of writing it to a status, if there is one: then also an error that only a change of the spec
// fixes is not terminal, but retried until it is in the status.
func Reported(err, writeErr error) error {
	if writeErr != nil && errors.Is(err, reconcile.TerminalError(nil)) {
		err = errors.New(err.Error())
	}
	return errors.Join(err, writeErr)
}

// Result is what a reconciler returns for an error. After a routine one the object is requeued soon, without an error in logs and metrics.
func Result(err error) (reconcile.Result, error) {
	if err != nil && Routine(err) {
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{}, err
}

// WebhookAway reports whether an API server has rejected a request as it could not call a webhook. It has no reason of its own for that.
func WebhookAway(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
