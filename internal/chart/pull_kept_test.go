package chart

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/internal/chart/charttest"
)

// A chart whose digest is known needs its registry once. That of a tag may have changed, and other credentials may not allow it.
func TestPullWithoutRegistry(t *testing.T) {
	var down atomic.Bool
	tag, digest := charttest.PushBehind(t, []byte("archive"), func(registry http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "down", http.StatusForbidden)
				return
			}
			registry.ServeHTTP(w, r)
		})
	})
	byTag, byDigest := &gardencorev1.OCIRepository{Ref: &tag}, &gardencorev1.OCIRepository{Ref: &digest}
	p, other := &Puller{}, Access{DockerConfig: fmt.Appendf(nil, `{"auths":{%q:{"username":"a","password":"b"}}}`, strings.Split(tag, "/")[0])}
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
