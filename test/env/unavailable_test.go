package env

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRequestsThatAreNotHandedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   string
		requests int
		want     int
	}{
		"the kube-apiserver's own": {"service unavailable", 3, http.StatusOK},
		"that of the one behind":   {"too busy", 1, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				if body, _ := io.ReadAll(r.Body); string(body) != "body" {
					t.Errorf("request %d has body %q", requests, body)
				}
				if requests < 3 {
					http.Error(w, tc.answer, http.StatusServiceUnavailable)
					return
				}
				fmt.Fprint(w, "fine")
			}))
			defer server.Close()
			client := &http.Client{Transport: again{http.DefaultTransport}}
			response, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != tc.want || requests != tc.requests {
				t.Errorf("after %d requests: %s %q, %v", requests, response.Status, body, err)
			}
		})
	}
}
