package charttest

import (
	"io"
	"log"
	"net/http"
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
	tag, _ := PushBehind(t, archive, func(registry http.Handler) http.Handler { return registry })
	return tag
}

// PushBehind is Push to a registry whose requests go through a handler of the test. It returns the references of the chart by its tag and by its digest.
func PushBehind(t *testing.T, archive []byte, through func(registry http.Handler) http.Handler) (byTag, byDigest string) {
	t.Helper()
	server := httptest.NewServer(through(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	t.Cleanup(server.Close)
	artifact, err := mutate.AppendLayers(empty.Image, static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/charts/chart:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, artifact); err != nil {
		t.Fatal(err)
	}
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return tag.String(), tag.Context().Digest(digest.String()).String()
}
