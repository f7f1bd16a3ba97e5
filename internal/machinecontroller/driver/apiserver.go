package driver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// APIErrorf returns an error of an API server with a code, for drivers whose machines are objects. The error follows the text.
func APIErrorf(err error, format string, args ...any) error {
	code := Internal
	switch {
	case apierrors.IsNotFound(err):
		code = NotFound
	case apierrors.IsForbidden(err):
		// These permissions are not those of the shoot owner. An API server that has just started may not have read them yet.
		code = FailedPrecondition
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		code = InvalidArgument
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		code = Aborted
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		code = Unavailable
	}
	return Errorf(code, format+": %w", append(args, err)...)
}
