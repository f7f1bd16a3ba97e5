package compat

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gardener.cloud/gardener/test/facts"
)

// factsDir returns the directory with the compatibility facts and skips the test if there is none.
func factsDir(t testing.TB) string { return facts.Dir(t) }

// schemaField is one line of a schema file.
type schemaField struct {
	path, typ  string
	required   bool
	deprecated bool
	mergeKey   string
	values     []string
	valueSet   string
}

// schema holds the fields of every kind in one schema file.
type schema map[string][]schemaField

var schemaKind = regexp.MustCompile(`^  (\w+):$`)

func readSchema(t testing.TB, name string) schema {
	t.Helper()
	f, err := os.Open(filepath.Join(factsDir(t), "schemas", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	out, kind := schema{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if m := schemaKind.FindStringSubmatch(line); m != nil {
			kind = m[1]
			out[kind] = nil
			continue
		}
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		path, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.Fields(rest)
		field := schemaField{path: path, typ: words[0]}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "required":
				field.required = true
			case "deprecated":
				field.deprecated = true
			case "mergeKey":
				field.mergeKey = value
			case "values":
				if set, ok := strings.CutPrefix(value, "@"); ok {
					field.valueSet = set
				} else {
					field.values = strings.Split(value, "|")
				}
			}
		}
		out[kind] = append(out[kind], field)
	}
	return out
}

// readValueSets returns the sets that "values=@Name" refers to.
func readValueSets(t testing.TB) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(factsDir(t), "schemas", "value-sets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string][]string{}, ""
	for _, line := range strings.Split(string(data), "\n") {
		if value, ok := strings.CutPrefix(line, "- "); ok {
			out[name] = append(out[name], value)
		} else if key, ok := strings.CutSuffix(line, ":"); ok {
			name = key
		}
	}
	return out
}
