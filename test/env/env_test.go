package env

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Who starts then asks once which kinds there are.
func TestGardenIsDiscovered(t *testing.T) {
	e := Start(t)
	httpClient, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range apiVersions {
		for kind := range e.Scheme.KnownTypes(version) {
			if !strings.HasSuffix(kind, "List") || kind == "List" {
				continue
			}
			mapper, err := apiutil.NewDynamicRESTMapper(e.Config, httpClient)
			if err != nil {
				t.Fatal(err)
			}
			kind := version.WithKind(strings.TrimSuffix(kind, "List")).GroupKind()
			if _, err := mapper.RESTMapping(kind, version.Version); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// Whoever starts a garden need not wait for a server that has ended.
func TestServerThatEndsSaysWhy(t *testing.T) {
	for name, option := range map[string]Option{"kube-apiserver": KubeAPIServerFlags("--no-such-flag"), "gardener-apiserver": Flags("--no-such-flag")} {
		t.Run(name, func(t *testing.T) {
			e, err := New(t.Context(), io.Discard, option)
			if errors.Is(err, ErrNotBuilt) && os.Getenv("CI") == "" {
				t.Skip(err)
			}
			if err == nil {
				_ = e.Stop()
				t.Fatal("it has started")
			}
			if !strings.Contains(err.Error(), "unknown flag: --no-such-flag") || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
