package charttest

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
)

// Push serves a chart in a registry of its own until the test ends, and returns its reference.
func Push(t *testing.T, archive []byte) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	artifact, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/charts/chart:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, artifact); err != nil {
		t.Fatal(err)
	}
	return reference.String()
}
