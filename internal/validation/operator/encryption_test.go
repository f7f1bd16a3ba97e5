package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// A key belongs to its provider: if another one could be set, API servers could not read what is stored any more.
func TestEncryptionProviderStays(t *testing.T) {
	with := func(provider corev1beta1.EncryptionProviderType) func(*garden) {
		return func(g *garden) {
			config := &corev1beta1.EncryptionConfig{Provider: corev1beta1.EncryptionProvider{Type: &provider}}
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{}
			g.Spec.VirtualCluster.Kubernetes.KubeAPIServer.EncryptionConfig = config
			g.Spec.VirtualCluster.Gardener.GardenerAPIServer = &operatorv1alpha1.GardenerAPIServerConfig{EncryptionConfig: config}
		}
	}
	without := func(g *garden) {
		g.Spec.VirtualCluster.Kubernetes.KubeAPIServer, g.Spec.VirtualCluster.Gardener.GardenerAPIServer = nil, nil
	}
	for name, tc := range map[string]struct {
		before, after func(*garden)
		want          []string
	}{
		"the same":                {before: with("secretbox"), after: with("secretbox")},
		"the default is set":      {before: without, after: with("aescbc")},
		"the default is not set":  {before: with("aescbc"), after: without},
		"another one":             {before: with("aescbc"), after: with("secretbox"), want: bothProviders},
		"another than by default": {before: without, after: with("aesgcm"), want: bothProviders},
		"removed":                 {before: with("secretbox"), after: without, want: bothProviders},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, results(update(validGarden(t, tc.after), validGarden(t, tc.before)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var bothProviders = []string{
	"forbidden spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig.provider.type",
	"forbidden spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.provider.type",
}
