// Command gatewaycrds writes the CustomResourceDefinitions of the Gateway API that we deploy, from the module in go.mod. Descriptions
// are left out, which makes them a fraction of the size. Usage: go run ./hack/gatewaycrds DIRECTORY
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are those that the gateway of a seed needs.
var kinds = []string{"gatewayclasses", "gateways", "tlsroutes"}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(target string) error {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return fmt.Errorf("find the module of the Gateway API: %w", err)
	}
	for _, kind := range kinds {
		name := "gateway.networking.k8s.io_" + kind + ".yaml"
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "standard", name))
		if err != nil {
			return err
		}
		var definition map[string]any
		if err := yaml.Unmarshal(data, &definition); err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		trim(definition)
		delete(definition, "status")
		if data, err = yaml.Marshal(definition); err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(target, name), data, 0o644); err != nil { //nolint:gosec // it is source
			return err
		}
	}
	return nil
}

// trim removes descriptions, which are texts; a property of that name is not.
func trim(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, inner := range v {
			trim(inner)
		}
	case []any:
		for _, inner := range v {
			trim(inner)
		}
	}
}
