package snapstore

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// attempts is how often a request is made that fails for reasons which may pass.
const attempts = 5

// maybeLater reports whether a request may succeed when it is made again: status is that of its response, if there is one.
func maybeLater(status int, err error) bool {
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError:
		return true
	case status != 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// retried makes a request again if it may succeed then, statusOf being the status of the response that an error is about.
func retried(ctx context.Context, statusOf func(error) int, request func() error) (err error) {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: attempts}
	over := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		err = request()
		return !maybeLater(statusOf(err), err), nil
	})
	if err != nil {
		return err
	}
	return over
}

// errorCode returns the code for the status of a response.
func errorCode(status int, err error) gcerrors.ErrorCode {
	switch {
	case status == http.StatusNotFound:
		return gcerrors.NotFound
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return gcerrors.PermissionDenied
	case status == http.StatusTooManyRequests || status == http.StatusRequestEntityTooLarge:
		return gcerrors.ResourceExhausted
	case errors.Is(err, errUnused):
		return gcerrors.Unimplemented
	}
	return gcerrors.Unknown
}

var errUnused = errors.New("not implemented, as backups do not need it")

// unused are the methods of a driver.Bucket that backups do not need.
type unused struct{}

func (unused) As(any) bool { return false }

func (unused) ErrorAs(error, any) bool { return false }

func (unused) Attributes(context.Context, string) (*driver.Attributes, error) { return nil, errUnused }

func (unused) Copy(context.Context, string, string, *driver.CopyOptions) error { return errUnused }

func (unused) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnused
}

func (unused) Close() error { return nil }

// reader reads an object.
type reader struct {
	io.ReadCloser
	attributes driver.ReaderAttributes
}

func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attributes }

func (r *reader) As(any) bool { return false }
