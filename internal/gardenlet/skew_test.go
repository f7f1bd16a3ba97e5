package gardenlet

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/component/gardenerinfo"
)

func TestCheckSkew(t *testing.T) {
	info := func(version string) *corev1.ConfigMap {
		m, err := gardenerinfo.ConfigMap(gardenerinfo.APIServer{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	broken := info("v1.150.0")
	for key := range broken.Data {
		broken.Data[key] = "["
	}
	for name, tc := range map[string]struct {
		info *corev1.ConfigMap
		own  string
		want string
	}{
		"no information":    {own: "v1.150.0"},
		"the same":          {info: info("v1.150.0"), own: "v1.150.0"},
		"an older agent":    {info: info("v1.150.0"), own: "v1.148.0"},
		"a newer agent":     {info: info("v1.150.0"), own: "v1.151.0", want: "upgrade the garden first"},
		"not a version":     {info: info("main"), own: "v1.150.0"},
		"own not a version": {info: info("v1.150.0"), own: "main"},
		"not YAML":          {info: broken, own: "v1.150.0", want: "gardener-system-public/gardener-info"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.info != nil {
				builder.WithObjects(tc.info)
			}
			err := checkSkew(context.Background(), builder.Build(), tc.own, logr.Discard())
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("checkSkew: %v, want %q", err, tc.want)
			}
		})
	}
}
