package env

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// unavailable is the kube-apiserver's whole answer while it takes the API server behind it for ill. It has not handed the request on.
const unavailable = "service unavailable\n"

// again repeats requests that the kube-apiserver does not hand on: on a busy computer, the API server behind it may take more than the few
// seconds that health checks wait. Controllers try again anyway; tests do not.
type again struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a again) RoundTrip(r *http.Request) (*http.Response, error) {
	for end := time.Now().Add(time.Minute); ; {
		response, err := a.next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable || response.ContentLength != int64(len(unavailable)) {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || string(body) != unavailable || time.Now().After(end) || r.Body != nil && r.GetBody == nil {
			return response, err
		}
		select {
		case <-r.Context().Done():
			return response, nil
		case <-time.After(lookAgain):
		}
		if r.Body != nil {
			r = r.Clone(r.Context())
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}
