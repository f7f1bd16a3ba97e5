package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
)

// goField is a field as JSON shows it, found by reflection.
type goField struct {
	path, typ string
	required  bool
	mergeKey  string
	owner     reflect.Type
	name      string       // of the field in Go
	named     reflect.Type // the string type, if the field or its elements have one of api/
}

var packageAliases = map[string]string{
	"k8s.io/api/core/v1":                                       "corev1",
	"k8s.io/api/rbac/v1":                                       "rbacv1",
	"k8s.io/api/autoscaling/v1":                                "autoscalingv1",
	"k8s.io/api/networking/v1":                                 "networkingv1",
	"k8s.io/apimachinery/pkg/apis/meta/v1":                     "metav1",
	"k8s.io/apimachinery/pkg/api/resource":                     "resource",
	"k8s.io/apimachinery/pkg/runtime":                          "runtime",
	"k8s.io/apimachinery/pkg/util/intstr":                      "intstr",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": "apiextensionsv1",
	"k8s.io/component-base/config/v1alpha1":                    "componentbaseconfigv1alpha1",
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// expanded says whether the fields of a type are listed one by one in schemas.
func expanded(typ reflect.Type) bool {
	if typ.Kind() != reflect.Struct || typ.Implements(marshaler) {
		return false
	}
	return strings.HasPrefix(typ.PkgPath(), apiPath) || strings.HasPrefix(typ.PkgPath(), "k8s.io/component-base/")
}

// typeName names a Go type the way schemas do; home is the package that needs no prefix.
func typeName(typ reflect.Type, home string) string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return typeName(typ.Elem(), home)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
		if alias, ok := packageAliases[typ.PkgPath()]; ok {
			return alias + "." + typ.Name()
		}
		return "bytes"
	case typ.Kind() == reflect.Slice:
		return typeName(typ.Elem(), home) + "[]"
	case typ.Kind() == reflect.Map && packageAliases[typ.PkgPath()] == "":
		return "map<string," + typeName(typ.Elem(), home) + ">"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	case typ.Kind() == reflect.String, typ.Kind() != reflect.Struct && typ.Kind() != reflect.Map:
		return typ.Kind().String()
	}
	if alias, ok := packageAliases[typ.PkgPath()]; ok {
		return alias + "." + typ.Name()
	}
	if pkg := strings.TrimPrefix(typ.PkgPath(), apiPath); pkg != home {
		return strings.TrimPrefix(pkg, "config/") + "." + typ.Name()
	}
	return typ.Name()
}

// walk lists the fields of a struct type below a path.
func walk(typ reflect.Type, path, home string, out *[]goField) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Name() == "TypeMeta" || name == "-" {
			continue
		}
		if name == "" {
			walk(field.Type, path, home, out)
			continue
		}
		f := goField{
			path: path + name, typ: typeName(field.Type, home), required: !strings.Contains(options, "omitempty"),
			mergeKey: field.Tag.Get("patchMergeKey"), owner: typ, name: field.Name,
		}
		elem, suffix := field.Type, ""
		for {
			switch {
			case elem.Kind() == reflect.Pointer:
				elem = elem.Elem()
				continue
			case elem.Kind() == reflect.Slice && elem.Elem().Kind() != reflect.Uint8:
				elem, suffix = elem.Elem(), suffix+"[]"
				continue
			case elem.Kind() == reflect.Map && packageAliases[elem.PkgPath()] == "":
				elem, suffix = elem.Elem(), suffix+"{}"
				continue
			}
			break
		}
		if elem.Kind() == reflect.String && strings.HasPrefix(elem.PkgPath(), apiPath) {
			f.named = elem
		}
		*out = append(*out, f)
		if expanded(elem) {
			walk(elem, path+name+suffix+".", home, out)
		}
	}
}

// allowed are the intended differences: "KIND what: path" -> reason, a trailing "*" stands for everything below.
func allowed(t testing.TB) map[string]string { return allowedIn(t, "allowed.txt") }

func allowedIn(t testing.TB, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		difference, reason, ok := strings.Cut(line, " # ")
		if !ok || strings.TrimSpace(reason) == "" {
			t.Fatalf("%s: %q has no reason", name, line)
		}
		out[strings.TrimSpace(difference)] = reason
	}
	return out
}

func isAllowed(list map[string]string, used map[string]bool, difference string) bool {
	for pattern := range list {
		prefix, all := strings.CutSuffix(pattern, "*")
		if difference == pattern || all && strings.HasPrefix(difference, prefix) {
			used[pattern] = true
			return true
		}
	}
	return false
}

// TestFields compares every field of every kind with the schemas: path, type, optionality, merge key, constants and
// deprecation.
func TestFields(t *testing.T) {
	factsDir(t)
	list, used := allowed(t), map[string]bool{}
	sets := readValueSets(t)
	sources := map[string]source{}
	sourceOf := func(typ reflect.Type) source {
		pkg := strings.TrimPrefix(typ.PkgPath(), apiPath)
		if _, ok := sources[pkg]; !ok {
			sources[pkg] = readSource(t, pkg)
		}
		return sources[pkg]
	}

	for _, g := range groups {
		if g.crd {
			continue
		}
		name := g.schema
		if name == "" {
			name = g.pkg
		}
		t.Run(name, func(t *testing.T) {
			facts := schema{}
			if g.schema != "" {
				facts = readSchema(t, g.schema)
			}
			kinds := g.kinds()
			var expected, present, wrong, extra int
			differ := func(format string, args ...any) {
				difference := name + " " + fmt.Sprintf(format, args...)
				if !isAllowed(list, used, difference) {
					t.Error(difference)
				}
			}

			for kind, fields := range facts {
				expected += len(fields)
				typ, ok := kinds[kind]
				if !ok {
					differ("missing: %s", kind)
					continue
				}
				var got []goField
				walk(typ, "", g.pkg, &got)
				byPath := map[string]goField{}
				for _, f := range got {
					byPath[f.path] = f
				}
				for _, want := range fields {
					have, ok := byPath[want.path]
					if !ok {
						differ("missing: %s %s", kind, want.path)
						continue
					}
					delete(byPath, want.path)
					present++
					if have.typ != want.typ {
						wrong++
						differ("type: %s %s is %s instead of %s", kind, want.path, have.typ, want.typ)
					}
					if have.required != want.required {
						differ("required: %s %s is %v instead of %v", kind, want.path, have.required, want.required)
					}
					if have.mergeKey != want.mergeKey {
						differ("mergeKey: %s %s is %q instead of %q", kind, want.path, have.mergeKey, want.mergeKey)
					}
					if expanded(have.owner) && strings.HasPrefix(have.owner.PkgPath(), apiPath) {
						if got := sourceOf(have.owner).deprecated(have.owner, have.name); got != want.deprecated {
							differ("deprecated: %s %s is %v instead of %v", kind, want.path, got, want.deprecated)
						}
					}
					checkValues(want, have, sets, sourceOf, func(msg string) { differ("values: %s %s %s", kind, want.path, msg) })
				}
				extra += len(byPath)
				for path := range byPath {
					differ("extra: %s %s", kind, path)
				}
				delete(kinds, kind)
			}
			for kind, typ := range kinds {
				var got []goField
				walk(typ, "", g.pkg, &got)
				extra += len(got)
				differ("extra: %s", kind)
			}
			t.Logf("fields expected %d, present %d, wrong type %d, extra %d", expected, present, wrong, extra)
		})
	}
	for pattern := range list {
		if !used[pattern] {
			t.Errorf("allowed.txt: %q is not a difference any more", pattern)
		}
	}
}

// TestDocumented makes sure that kubectl explain has something to say.
func TestDocumented(t *testing.T) {
	for _, g := range groups {
		if undocumented := readSource(t, g.pkg).undocumented; len(undocumented) > 0 {
			t.Errorf("%s: without a doc comment: %v", g.pkg, undocumented)
		}
	}
}

// checkValues compares the constants of a field's type with the known values.
func checkValues(want schemaField, have goField, sets map[string][]string, sourceOf func(reflect.Type) source, differ func(string)) {
	values := want.values
	if want.valueSet != "" {
		values = sets[want.valueSet]
	}
	if len(values) == 0 || have.named == nil {
		return
	}
	consts := slices.Clone(sourceOf(have.named).consts[have.named.Name()])
	sort.Strings(consts)
	consts = slices.Compact(consts)
	if want.valueSet == "ConditionType" {
		// Conditions of a kind are declared beside it, and the set is that of all groups.
		for _, c := range consts {
			if !slices.Contains(values, c) {
				differ("has the unknown constant " + c)
			}
		}
		return
	}
	values = slices.Clone(values)
	sort.Strings(values)
	if !slices.Equal(values, consts) {
		differ(fmt.Sprintf("has the constants %v instead of %v", consts, values))
	}
}
