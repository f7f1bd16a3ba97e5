package compat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// TestConstants makes sure that every constant has a value that is known. Their names are ours.
func TestConstants(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "constants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{
		"unmanaged": true, // of the DNS provider; listed among the advertised addresses only
	}
	sections, section := map[string][]string{}, ""
	entry := regexp.MustCompile(`^  (\w+): (.*)$`)
	for _, line := range strings.Split(string(data), "\n") {
		if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			section = name
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		value := strings.Trim(m[2], `'"`)
		if rest, ok := strings.CutPrefix(value, "{name: "); ok {
			value, _, _ = strings.Cut(rest, ",")
		}
		known[value] = true
		sections[section] = append(sections[section], value)
	}

	have := map[string]bool{}
	dir := filepath.Join("..", "..", "api", "core", "v1beta1", "constants")
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				spec := spec.(*ast.ValueSpec)
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				have[value] = true
				if !known[value] {
					t.Errorf("%s = %q is not a known value", spec.Names[0], value)
				}
				if !strings.HasPrefix(spec.Doc.Text(), spec.Names[0].Name+" ") {
					t.Errorf("%s has no comment that begins with its name", spec.Names[0])
				}
			}
		}
	}
	names := make([]string, 0, len(sections))
	for name := range sections {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		var n int
		for _, value := range sections[name] {
			if have[value] {
				n++
			}
		}
		t.Logf("%-24s %3d of %3d values are constants of the core group", name, n, len(sections[name]))
	}
}
