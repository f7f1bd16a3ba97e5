package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestLimitResponses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", len(r.URL.Query().Get("size"))))
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	LimitResponses(config, 4)
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for size, tooLarge := range map[int]bool{0: false, 3: false, 4: false, 5: true, 6: true} {
		response, err := c.Get(server.URL + "?size=" + strings.Repeat("x", size)) //nolint:noctx // a test of a transport
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if errors.Is(err, ErrTooLarge) != tooLarge || !tooLarge && len(body) != size {
			t.Errorf("of %d bytes, %d were read: %v", size, len(body), err)
		}
	}
}
