package gardenlet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"gardener.cloud/gardener/internal/kube"
)

// Users decide which resources the API server of their shoot lists.
func TestDiscoveryOfAShootIsLimited(t *testing.T) {
	shoot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"example.com"},`+
			`"versions":[{"version":"v1","freshness":"Current","resources":[{}`+strings.Repeat(",{}", 2_000_000)+`]}]}]}`)
	}))
	t.Cleanup(shoot.Close)
	if _, err := discoverShoot(&rest.Config{Host: shoot.URL}); err == nil || !strings.Contains(err.Error(), kube.ErrTooLarge.Error()) {
		t.Errorf("discoverShoot() = %v, want %v", err, kube.ErrTooLarge)
	}
}
