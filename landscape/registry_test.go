package landscape

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/distribution"
)

// gardener-operator and gardenlets pull what pushChart has pushed.
func TestPushArtifact(t *testing.T) {
	var writes atomic.Int32
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			writes.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	archive, metadata, err := charts.Released(charts.ProviderLocal, charts.Release{Version: "v1.2.3+a", Repository: "registry.example/gardener"})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := distribution.NewChart(archive, metadata)
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/gardener/charts/" + artifact.Name + ":" + artifact.Tag)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := pushArtifact(target, artifact.OCIArtifact)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/gardener/charts/provider-local:v1.2.3_a@" + artifact.Digest().String(); !strings.HasSuffix(reference, want) {
		t.Errorf("the reference is %s, want ...%s", reference, want)
	}
	pulled, err := new(chart.Puller).Pull(t.Context(), &gardencorev1.OCIRepository{Ref: &reference}, chart.Access{})
	if err != nil || !bytes.Equal(pulled, archive) {
		t.Errorf("the chart that is pulled differs (%v)", err)
	}
	before := writes.Load()
	if again, err := pushArtifact(target, artifact.OCIArtifact); err != nil || again != reference || writes.Load() != before {
		t.Errorf("the second push writes %d times: %s, %v", writes.Load()-before, again, err)
	}
}

// The registry has no TLS. Pods pull charts without it only from private addresses and names that end in .local.
func TestChartsArePulledWithoutTLS(t *testing.T) {
	target, err := (&Landscape{Name: "test"}).pushTarget(RegistryHost + "/gardener/charts/provider-local:v1")
	if err != nil {
		t.Fatal(err)
	}
	// As the puller parses it, which does not know that the registry has no TLS.
	reference, err := name.ParseReference(target.String() + "@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	if err != nil {
		t.Fatal(err)
	}
	if scheme := reference.Context().Scheme(); scheme != "http" {
		t.Errorf("charts at %s are pulled with %s", reference, scheme)
	}
}
