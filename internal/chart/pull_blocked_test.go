package chart

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
)

// A registry must not send its client to what it cannot reach itself: by a redirect, or as the server of its tokens.
func TestPullBlocked(t *testing.T) {
	var reached atomic.Bool
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(private.Close)
	port := private.URL[strings.LastIndex(private.URL, ":"):]
	blocked := func(address string) string {
		if address == "127.0.0.2" {
			return "is blocked"
		}
		return ""
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2"+port, http.StatusTemporaryRedirect)
		},
		"a server of tokens": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://127.0.0.2`+port+`/token",service="a"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := httptest.NewServer(answer)
			defer registry.Close()
			repository := &gardencorev1.OCIRepository{Ref: new(strings.TrimPrefix(registry.URL, "http://") + "/charts/a:v1")}
			_, err := (&Puller{Blocked: blocked}).Pull(t.Context(), repository, Access{})
			if err == nil || !strings.Contains(err.Error(), "the destination is blocked") || reached.Load() {
				t.Errorf("Pull() = %v, the other server was reached: %t", err, reached.Load())
			}
		})
	}
}
