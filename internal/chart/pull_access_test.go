package chart

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/internal/chart/charttest"
)

func TestCredentialsFor(t *testing.T) {
	for _, tc := range []struct {
		reference string
		keys      []string
		want      string // the key
	}{
		{"registry.example.com/charts/a:1", []string{"registry.example.com"}, "registry.example.com"},
		{"registry.example.com/charts/a:1", []string{"https://registry.example.com/"}, "https://registry.example.com/"},
		{"registry.example.com/charts/a:1", []string{"http://registry.example.com"}, "http://registry.example.com"},
		{"registry.example.com/charts/a:1", []string{"https://registry.example.com/v2/"}, "https://registry.example.com/v2/"},
		{"registry.example.com/charts/a:1", []string{"registry.example.com", "registry.example.com/charts"}, "registry.example.com/charts"},
		{"registry.example.com/charts/a:1", []string{"registry.example.com/charts/a", "registry.example.com/charts"}, "registry.example.com/charts/a"},
		{"registry.example.com/charts/a:1", []string{"registry.example.com/chart", "registry.example.com:5000", "example.com", ""}, ""},
		{"registry.example.com:5000/charts/a:1", []string{"registry.example.com", "registry.example.com:5000"}, "registry.example.com:5000"},
		{"docker.io/charts/a:1", []string{"https://index.docker.io/v1/"}, "https://index.docker.io/v1/"},
		{"charts/a:1", []string{"docker.io"}, "docker.io"},
	} {
		reference, err := name.ParseReference(tc.reference)
		if err != nil {
			t.Fatal(err)
		}
		auths := map[string]authn.AuthConfig{}
		for _, key := range tc.keys {
			auths[key] = authn.AuthConfig{Username: key}
		}
		if got, ok := credentialsFor(reference.Context(), auths); got.Username != tc.want || ok != (tc.want != "") {
			t.Errorf("credentialsFor(%s) of %v = %q, %v, want %q", tc.reference, tc.keys, got.Username, ok, tc.want)
		}
	}
}

// A Secret that does not work must not be ignored: without credentials, a registry only says that the chart does not exist, or that it is forbidden.
func TestPullSecret(t *testing.T) {
	tag := charttest.Push(t, []byte("archive"))
	for content, want := range map[string]string{
		"": `no key ".dockerconfigjson"`,
		`{"auths":{"registry.example.com":{"username":"a","password":"b"}}}`:                                   "--docker-server=" + strings.Split(tag, "/")[0],
		fmt.Sprintf(`{"auths":{"http://%s/v2/":{"username":"a","password":"b"}}}`, strings.Split(tag, "/")[0]): "",
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "pull"}}
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)}
		_, err := (&Puller{}).PullFor(t.Context(), fake.NewClientBuilder().WithObjects(secret).Build(), &gardencorev1.OCIRepository{
			Ref: &tag, PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
		})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("PullFor() with %s = %v, want %q", content, err, want)
		}
	}
}

func TestPullFromRegistryWithoutHead(t *testing.T) {
	var pushed atomic.Bool
	tag, _ := charttest.PushBehind(t, []byte("archive"), func(registry http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if pushed.Load() && r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			registry.ServeHTTP(w, r)
		})
	})
	pushed.Store(true)
	if archive, err := (&Puller{}).Pull(t.Context(), &gardencorev1.OCIRepository{Ref: &tag}, Access{}); err != nil || string(archive) != "archive" {
		t.Errorf("Pull() = %q, %v", archive, err)
	}
}
