package gardenlet

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAwaitingGrants(t *testing.T) {
	const path = "/api/v1/namespaces/garden-dev/secrets/credentials"
	for name, tc := range map[string]struct {
		method, path string
		// granted is the number of the request from which on it is allowed.
		granted  int
		requests int
		status   int
	}{
		"it is allowed":            {path: path, granted: 1, requests: 1, status: http.StatusOK},
		"it is granted soon":       {path: path, granted: 4, requests: 4, status: http.StatusOK},
		"a write, with its body":   {method: http.MethodPost, path: "/api/v1/namespaces/seed-a/serviceaccounts/x/token", granted: 3, requests: 3, status: http.StatusOK},
		"it is never granted":      {path: path, granted: 100, requests: 8, status: http.StatusForbidden},
		"another kind":             {path: "/api/v1/namespaces/garden-dev/configmaps/secrets", granted: 100, requests: 1, status: http.StatusForbidden},
		"InternalSecrets":          {path: "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/internalsecrets/a.ca-client", granted: 2, requests: 2, status: http.StatusOK},
		"Secrets of no namespace":  {path: "/api/v1/secrets", granted: 100, requests: 1, status: http.StatusForbidden},
		"a namespace of this name": {path: "/api/v1/namespaces/secrets", granted: 100, requests: 1, status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				transport := awaitingGrants{roundTripper(func(r *http.Request) (*http.Response, error) {
					requests++
					if body, _ := io.ReadAll(r.Body); tc.method != "" && string(body) != "body" {
						t.Errorf("request %d has the body %q", requests, body)
					}
					recorder := httptest.NewRecorder()
					if requests < tc.granted {
						recorder.WriteHeader(http.StatusForbidden)
					}
					return recorder.Result(), nil
				})}
				var body io.Reader = http.NoBody
				if tc.method != "" {
					body = strings.NewReader("body")
				}
				request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://garden.example"+tc.path, body)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				response, err := transport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if response.StatusCode != tc.status || requests != tc.requests {
					t.Errorf("status %d after %d requests", response.StatusCode, requests)
				}
				if took := time.Since(start); took > 15*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
	t.Run("the caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://garden.example"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := awaitingGrants{roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody}, nil
		})}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	})
}
