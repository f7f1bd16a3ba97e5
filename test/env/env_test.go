package env

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

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
