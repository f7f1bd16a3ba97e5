package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/test/facts"
)

// TestCompatIsComplete checks that docs/compat.md has every controller, webhook and admission plugin of the original.
func TestCompatIsComplete(t *testing.T) {
	dir := facts.Dir(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "compat.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		sections[strings.ToLower(strings.ReplaceAll(title, " ", "-"))] = body
	}
	var plugins struct {
		Plugins []named `json:"plugins"`
	}
	read(t, filepath.Join(dir, "admission-plugins.yaml"), &plugins)
	section := sections["admission-plugins-of-gardener-apiserver"]
	for _, plugin := range plugins.Plugins {
		if !strings.Contains(section, plugin.Name) {
			t.Errorf("admission plugin %s is missing", plugin.Name)
		}
	}
	var components struct {
		Components map[string]struct {
			Controllers []named `json:"controllers"`
			Webhooks    []named `json:"webhooks"`
		} `json:"components"`
	}
	read(t, filepath.Join(dir, "controllers.yaml"), &components)
	if len(plugins.Plugins) == 0 || len(components.Components) == 0 {
		t.Fatal("the facts have no plugins or components")
	}
	for component, have := range components.Components {
		if component == "extension-library" {
			continue // its controllers have the names of kinds
		}
		for _, what := range append(have.Controllers, have.Webhooks...) {
			// Webhooks have the domain of their group: "audit-policies.gardener.cloud".
			name, _, _ := strings.Cut(strings.TrimPrefix(what.Name, "validation.extensions."), ".")
			if component == "gardener-scheduler" && name == "shoot" {
				continue // the section is about this one only
			}
			if !strings.Contains(sections[component], "`"+name+"`") {
				t.Errorf("%s of %s is missing", what.Name, component)
			}
		}
	}
}

type named struct {
	Name string `json:"name"`
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
