package gardenlet

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// grantBackoff is how long a request is repeated that needs a permission which gardener-controller-manager is about to grant: it notices a new
// Shoot at the same time as the gardenlet. It ends after about six seconds.
var grantBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 7}

// grantedByName are the resources that a gardenlet may access by name, as soon as its seed needs them.
var grantedByName = []string{"secrets", "internalsecrets", "serviceaccounts"}

// awaitingGrants repeats requests that are forbidden because what is requested belongs to the seed only since a moment ago.
type awaitingGrants struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a awaitingGrants) RoundTrip(r *http.Request) (*http.Response, error) {
	hasBody := r.Body != nil && r.Body != http.NoBody
	for backoff := grantBackoff; ; {
		response, err := a.next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusForbidden || !isGrantedByName(r.URL.Path) || backoff.Steps == 0 || hasBody && r.GetBody == nil {
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
func (a awaitingGrants) WrappedRoundTripper() http.RoundTripper { return a.next }

// isGrantedByName reports whether a path is that of a resource in a namespace: /api/v1/namespaces/NAMESPACE/RESOURCE, or the same in a group.
func isGrantedByName(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	index := slices.Index(parts, "namespaces")
	return index >= 0 && len(parts) > index+2 && slices.Contains(grantedByName, parts[index+2])
}
