package compat

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/apiserver/admission"
)

// The plugins run in the order of the facts, and are on by default if they are so in the facts.
func TestAdmissionPlugins(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "admission-plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Plugins []struct {
			Name             string
			EnabledByDefault bool
		}
	}
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	type plugin struct {
		Name string
		On   bool
	}
	options := admission.NewOptions()
	var want, got []plugin
	for _, p := range facts.Plugins {
		if slices.Contains(options.RecommendedPluginOrder, p.Name) {
			want = append(want, plugin{p.Name, p.EnabledByDefault})
		}
	}
	for _, name := range options.RecommendedPluginOrder {
		// These are webhooks in the facts, only in the documents, or not in the original.
		if !slices.Contains([]string{"PlantValidator", "OpenIDConnectPreset", "ClusterOpenIDConnectPreset", "SeedRestriction", "ShootRestriction", "QuantityValidator"}, name) {
			got = append(got, plugin{name, !options.DefaultOffPlugins.Has(name)})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("admission plugins (-want +got):\n%s", diff)
	}
}
