package driver

import (
	"crypto/sha256"
	"encoding/hex"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
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

// LabelValue returns a name, or a hash of it if it is too long for a label.
func LabelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
