// Package errorcode gives errors the codes that users see in status.lastErrors.
package errorcode

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// coded is an error with codes.
type coded struct {
	error
	codes []corev1beta1.ErrorCode
}

func (c *coded) Unwrap() error { return c.error }

// With adds codes to an error, whose text stays the same. It returns nil for nil.
func With(err error, codes ...corev1beta1.ErrorCode) error {
	if err == nil || len(codes) == 0 {
		return err
	}
	return &coded{error: err, codes: codes}
}

// IfNotFound adds codes to an error if it says that an object is missing. Other errors of an API server may be temporary.
func IfNotFound(err error, codes ...corev1beta1.ErrorCode) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return With(err, codes...)
}

// Of returns the codes of an error and of all errors that it wraps, sorted, each once.
func Of(err error) []corev1beta1.ErrorCode {
	codes := collect(err, nil)
	slices.Sort(codes)
	return slices.Compact(codes)
}

func collect(err error, codes []corev1beta1.ErrorCode) []corev1beta1.ErrorCode {
	if c, ok := err.(*coded); ok { //nolint:errorlint // the walk itself unwraps
		codes = append(codes, c.codes...)
	}
	switch wrapper := err.(type) { //nolint:errorlint // the walk itself unwraps
	case interface{ Unwrap() error }:
		return collect(wrapper.Unwrap(), codes)
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			codes = collect(inner, codes)
		}
	}
	return codes
}

// NeedsUser says whether retrying does not help with any of the codes, as a user has to act first.
func NeedsUser(codes []corev1beta1.ErrorCode) bool {
	return slices.ContainsFunc(codes, func(code corev1beta1.ErrorCode) bool {
		switch code {
		case corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraDependencies,
			corev1beta1.ErrorInfraQuotaExceeded, corev1beta1.ErrorInfraRateLimitsExceeded,
			corev1beta1.ErrorConfigurationProblem, corev1beta1.ErrorProblematicWebhook:
			return true
		}
		return false
	})
}
