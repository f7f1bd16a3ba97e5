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

func TestRetryingForbidden(t *testing.T) {
	const path = "/api/v1/namespaces/garden-dev/secrets/credentials"
	for name, tc := range map[string]struct {
		method, path string
		// allowed is the number of the request from which on it is allowed.
		allowed  int
		requests int
		status   int
	}{
		"it is allowed":          {path: path, allowed: 1, requests: 1, status: http.StatusOK},
		"it is allowed soon":     {path: path, allowed: 4, requests: 4, status: http.StatusOK},
		"a write, with its body": {method: http.MethodPost, path: "/api/v1/namespaces/seed-a/serviceaccounts/x/token", allowed: 3, requests: 3, status: http.StatusOK},
		"it is never allowed":    {path: path, allowed: 100, requests: 8, status: http.StatusForbidden},
		"a Shoot":                {path: "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots/a/status", allowed: 2, requests: 2, status: http.StatusOK},
		"the ManagedSeed of a seed that is none": {
			path: "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseeds/a", allowed: 100, requests: 1, status: http.StatusForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				transport := retryingForbidden{roundTripper(func(r *http.Request) (*http.Response, error) {
					requests++
					if body, _ := io.ReadAll(r.Body); tc.method != "" && string(body) != "body" {
						t.Errorf("request %d has the body %q", requests, body)
					}
					recorder := httptest.NewRecorder()
					if requests < tc.allowed {
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
		response, err := retryingForbidden{roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody}, nil
		})}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	})
}
