package gardenlet

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// forbiddenBackoff is how long a forbidden request is repeated. It ends after about six seconds.
var forbiddenBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 7}

// retryingForbidden repeats requests that are forbidden: gardener-admission-controller allows what concerns the seed, and notices a new Shoot, or a
// new reference in it, at the same time as the gardenlet, or a little later. Only a request that stays forbidden is an error.
type retryingForbidden struct{ next http.RoundTripper }

// RetryForbidden wraps the transport of a client of the garden.
func RetryForbidden(next http.RoundTripper) http.RoundTripper { return retryingForbidden{next} }

// RoundTrip implements http.RoundTripper.
func (a retryingForbidden) RoundTrip(r *http.Request) (*http.Response, error) {
	hasBody := r.Body != nil && r.Body != http.NoBody
	for backoff := forbiddenBackoff; ; {
		response, err := a.next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusForbidden || forbiddenIfMissing(r.URL.Path) || backoff.Steps == 0 || hasBody && r.GetBody == nil {
			return response, err
		}
		timer := time.NewTimer(backoff.Step())
		select {
		case <-r.Context().Done():
			timer.Stop()
			return response, nil
		case <-timer.C:
		}
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
		_ = response.Body.Close()
		next := r.Clone(r.Context())
		if hasBody {
			if next.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		r = next
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (a retryingForbidden) WrappedRoundTripper() http.RoundTripper { return a.next }

// forbiddenIfMissing reports whether a path is that of an object that often does not exist, which is forbidden then: the seed need not be a
// ManagedSeed.
func forbiddenIfMissing(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "managedseeds")
}
