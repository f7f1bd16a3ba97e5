package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/settings/v1alpha1"
)

func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.KubeAPIServerOpenIDConnect{SigningAlgs: []string{"RS256"}, UsernameClaim: new("sub")}

	preset := &v1alpha1.OpenIDConnectPreset{}
	scheme.Default(preset)
	if diff := cmp.Diff(want, preset.Spec.Server); diff != "" {
		t.Errorf("preset (-want +got):\n%s", diff)
	}
	cluster := &v1alpha1.ClusterOpenIDConnectPresetList{Items: make([]v1alpha1.ClusterOpenIDConnectPreset, 1)}
	scheme.Default(cluster)
	if diff := cmp.Diff(want, cluster.Items[0].Spec.Server); diff != "" {
		t.Errorf("cluster preset (-want +got):\n%s", diff)
	}

	given := v1alpha1.KubeAPIServerOpenIDConnect{SigningAlgs: []string{"ES256"}, UsernameClaim: new("email")}
	preset.Spec.Server = *given.DeepCopy()
	scheme.Default(preset)
	if diff := cmp.Diff(given, preset.Spec.Server); diff != "" {
		t.Errorf("defaults replaced something (-want +got):\n%s", diff)
	}
}
