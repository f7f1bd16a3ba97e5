package chart

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
)

// A chart whose digest is known needs its registry once. That of a tag may have changed, and other credentials may not allow it.
func TestPullWithoutRegistry(t *testing.T) {
	var down atomic.Bool
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	artifact, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("archive"), layerType))
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
	byTag := &gardencorev1.OCIRepository{Ref: new(tag.String())}
	byDigest := &gardencorev1.OCIRepository{Ref: new(tag.Context().Digest(digest.String()).String())}
	p, other := &Puller{}, Access{DockerConfig: []byte("{}")}
	if _, err := p.Pull(t.Context(), byTag, Access{}); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	if archive, err := p.Pull(t.Context(), byDigest, Access{}); err != nil || string(archive) != "archive" {
		t.Errorf("Pull() by digest = %q, %v", archive, err)
	}
	if _, err := p.Pull(t.Context(), byTag, Access{}); err == nil {
		t.Error("Pull() by tag needs no registry")
	}
	if _, err := p.Pull(t.Context(), byDigest, other); err == nil {
		t.Error("Pull() with other credentials needs no registry")
	}
}
