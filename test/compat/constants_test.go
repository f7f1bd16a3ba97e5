package compat

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/pkg/secrets"
)

// constantSections are the sections of constants.yaml that belong to the API as a whole, so that every value of them must be a constant
// in api/. Names of the other sections belong to the components that have them.
var constantSections = []string{
	"annotationValues", "apiGroups", "enums", "errorCodes", "etcdDruid", "eventActions", "extensionKinds", "finalizers", "gardenRoles", "leaderElectionLocks",
	"machineControllerManager", "operations", "shootTasks", "taints",
}

// noConstants are values that are not constants of this implementation.
var noConstants = map[string]string{
	"extensions.gardener.cloud/{controller name}": "made from FinalizerPrefix",
	"gardener.cloud/terraformer":                  "of an extension library that the documents do not describe",
}

// TestConstants looks for well-known values among the constants in api/.
func TestConstants(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "constants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts map[string]any
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	known := apiConstants(t)
	for _, section := range constantSections {
		want := map[string]bool{}
		collectValues(facts[section], want)
		if len(want) == 0 {
			t.Errorf("%s: no values", section)
		}
		var missing []string
		for value := range want {
			if !known[value] && noConstants[value] == "" {
				missing = append(missing, value)
			}
		}
		sort.Strings(missing)
		if len(missing) > 0 {
			t.Errorf("%s: no constants for %q", section, missing)
		}
		t.Logf("%s: %d values", section, len(want))
	}
}

// TestSecretsManagerLabels compares the labels by which other managers, and tools, find credentials in the namespace of a control plane.
func TestSecretsManagerLabels(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "constants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Labels      map[string]string `json:"labels"`
		LabelValues map[string]string `json:"labelValues"`
	}
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	for name, ours := range map[string]string{
		"LabelKeyName": secrets.LabelKeyName, "LabelKeyManagedBy": secrets.LabelKeyManagedBy, "LabelKeyManagerIdentity": secrets.LabelKeyManagerIdentity,
		"LabelKeyChecksumConfig": secrets.LabelKeyChecksumConfig, "LabelKeyChecksumSigningCA": secrets.LabelKeyChecksumSigningCA,
		"LabelKeyBundleFor": secrets.LabelKeyBundleFor, "LabelKeyPersist": secrets.LabelKeyPersist,
		"LabelKeyLastRotationInitiationTime": secrets.LabelKeyLastRotationInitiationTime, "LabelKeyIssuedAtTime": secrets.LabelKeyIssuedAtTime,
		"LabelKeyValidUntilTime": secrets.LabelKeyValidUntilTime, "LabelKeyRenewAfterValidityPercentage": secrets.LabelKeyRenewAfterValidityPercentage,
		"LabelKeyUseDataForName": secrets.LabelKeyUseDataForName,
	} {
		if want := facts.Labels[name]; want == "" || ours != want {
			t.Errorf("%s is %q, want %q", name, ours, want)
		}
	}
	if want := facts.LabelValues["LabelValueSecretsManager"]; secrets.LabelValueSecretsManager != want {
		t.Errorf("%s is %q, want %q", secrets.LabelKeyManagedBy, secrets.LabelValueSecretsManager, want)
	}
}

// collectValues gathers the texts in a part of constants.yaml. Of an entry with more facts it is the one called value.
func collectValues(part any, out map[string]bool) {
	switch part := part.(type) {
	case map[string]any:
		if value, ok := part["value"].(string); ok {
			out[value] = true
			return
		}
		for _, value := range part {
			collectValues(value, out)
		}
	case []any:
		for _, value := range part {
			collectValues(value, out)
		}
	case string:
		out[part] = true
	}
}

// apiConstants returns the values of all text constants below api/.
func apiConstants(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	root := filepath.Join("..", "..", "api")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		exprs := map[string]ast.Expr{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "generated") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parse %s: %w", name, err)
			}
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.CONST {
					continue
				}
				for _, spec := range gen.Specs {
					spec := spec.(*ast.ValueSpec)
					for i, ident := range spec.Names {
						if i < len(spec.Values) {
							exprs[ident.Name] = spec.Values[i]
						}
					}
				}
			}
		}
		for _, expr := range exprs {
			if value, ok := textOf(expr, exprs); ok {
				out[value] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// textOf evaluates a constant expression of literals, constants of the same package, and sums of them.
func textOf(expr ast.Expr, consts map[string]ast.Expr) (string, bool) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(expr.Value)
		return value, expr.Kind == token.STRING && err == nil
	case *ast.Ident:
		if value, ok := consts[expr.Name]; ok {
			return textOf(value, consts)
		}
	case *ast.BinaryExpr:
		left, okLeft := textOf(expr.X, consts)
		right, okRight := textOf(expr.Y, consts)
		return left + right, expr.Op == token.ADD && okLeft && okRight
	case *ast.CallExpr: // a conversion such as ConditionType("x")
		if len(expr.Args) == 1 {
			return textOf(expr.Args[0], consts)
		}
	}
	return "", false
}
