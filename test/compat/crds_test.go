package compat

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/component/crds"
)

var ourCRDs = map[string]func() ([]*apiextensionsv1.CustomResourceDefinition, error){
	"autoscaling.gardener.cloud": crds.Autoscaling,
	"dashboard.gardener.cloud":   crds.Dashboard,
	"druid.gardener.cloud":       crds.Druid,
	"extensions.gardener.cloud":  crds.Extensions,
	"machine.sapcloud.io":        crds.Machine,
	"operator.gardener.cloud":    crds.Operator,
	"resources.gardener.cloud":   crds.Resources,

	"fluentbit.fluent.io":          foreignCRDs("fluentbit.fluent.io"),
	"monitoring.coreos.com":        foreignCRDs("monitoring.coreos.com"),
	"networking.istio.io":          foreignCRDs("networking.istio.io"),
	"opentelemetry.io":             foreignCRDs("opentelemetry.io"),
	"operator.victoriametrics.com": foreignCRDs("operator.victoriametrics.com"),
	"perses.dev":                   foreignCRDs("perses.dev"),
}

// foreignGroups are those of other projects. The facts have no schemas of them, and ours have none.
var foreignGroups = []string{
	"fluentbit.fluent.io", "monitoring.coreos.com", "networking.istio.io", "opentelemetry.io", "operator.victoriametrics.com", "perses.dev",
}

// notDeployed are definitions that the original has and does not deploy.
func notDeployed(crd crdFacts) bool {
	return crd.Group == "operator.victoriametrics.com" && crd.Plural != "vlsingles"
}

func foreignCRDs(group string) func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
		all, err := crds.Foreign()
		return slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Group != group }), err
	}
}

// crdFacts is what resources.yaml knows about a CustomResourceDefinition.
type crdFacts struct {
	Group             string   `json:"group"`
	Kind              string   `json:"kind"`
	Plural            string   `json:"plural"`
	Singular          string   `json:"singular"`
	ShortNames        []string `json:"shortNames"`
	Categories        []string `json:"categories"`
	Namespaced        bool     `json:"namespaced"`
	DeletionProtected bool     `json:"deletionProtected"`
	Versions          []struct {
		Name           string                                           `json:"name"`
		Storage        *bool                                            `json:"storage"` // missing means true
		Subresources   []string                                         `json:"subresources"`
		Scale          *scaleFacts                                      `json:"scale"`
		PrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"printerColumns"`
	} `json:"versions"`
}

type scaleFacts struct {
	LabelSelectorPath  string `json:"labelSelectorPath"`
	SpecReplicasPath   string `json:"specReplicasPath"`
	StatusReplicasPath string `json:"statusReplicasPath"`
}

// TestCRDs compares names, scope, versions, subresources and table columns of our CustomResourceDefinitions with resources.yaml.
func TestCRDs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "resources.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		CRDs []crdFacts `json:"crds"`
	}
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	want := map[string]crdFacts{}
	for _, crd := range facts.CRDs {
		if ourCRDs[crd.Group] != nil && !notDeployed(crd) {
			want[crd.Plural+"."+crd.Group] = crd
		}
	}

	got := map[string]crdFacts{}
	for group, get := range ourCRDs {
		list, err := get()
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range list {
			have := crdFacts{
				Group: group, Kind: crd.Spec.Names.Kind, Plural: crd.Spec.Names.Plural, Singular: crd.Spec.Names.Singular,
				ShortNames: crd.Spec.Names.ShortNames, Categories: crd.Spec.Names.Categories,
				Namespaced:        crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
				DeletionProtected: crd.Labels["gardener.cloud/deletion-protected"] == "true",
			}
			for _, version := range crd.Spec.Versions {
				if !version.Served {
					t.Errorf("%s: version %s is not served", crd.Name, version.Name)
				}
				v := struct {
					Name           string                                           `json:"name"`
					Storage        *bool                                            `json:"storage"` // missing means true
					Subresources   []string                                         `json:"subresources"`
					Scale          *scaleFacts                                      `json:"scale"`
					PrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"printerColumns"`
				}{Name: version.Name, PrinterColumns: version.AdditionalPrinterColumns}
				if !version.Storage {
					v.Storage = new(false)
				}
				if sub := version.Subresources; sub != nil {
					if sub.Scale != nil {
						v.Subresources = append(v.Subresources, "scale")
						v.Scale = &scaleFacts{SpecReplicasPath: sub.Scale.SpecReplicasPath, StatusReplicasPath: sub.Scale.StatusReplicasPath}
						if sub.Scale.LabelSelectorPath != nil {
							v.Scale.LabelSelectorPath = *sub.Scale.LabelSelectorPath
						}
					}
					if sub.Status != nil {
						v.Subresources = append(v.Subresources, "status")
					}
				}
				have.Versions = append(have.Versions, v)
			}
			got[crd.Name] = have
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("CustomResourceDefinitions differ (-want +got):\n%s", diff)
	}
	t.Logf("%d CustomResourceDefinitions", len(got))
}

// crdField is a line of a schema file with the facts that only matter for OpenAPI.
type crdField struct {
	path, typ string
	required  bool
	immutable bool
	flags     map[string]string
}

var patternFlag = regexp.MustCompile(`pattern=(.*?)(?: (?:default=|immutable|minLen=|maxLen=).*)?$`)

func readCRDFields(t *testing.T, name string) map[string][]crdField {
	t.Helper()
	f, err := os.Open(filepath.Join(factsDir(t), "schemas", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, kind := map[string][]crdField{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if m := schemaKind.FindStringSubmatch(line); m != nil {
			kind = m[1]
			continue
		}
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		path, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		typ, rest, _ := strings.Cut(rest, " ")
		field := crdField{path: path, typ: typ, flags: map[string]string{}}
		if m := patternFlag.FindStringSubmatch(rest); m != nil {
			field.flags["pattern"] = m[1]
			rest = strings.Replace(rest, "pattern="+m[1], "", 1)
		}
		for _, word := range strings.Fields(rest) {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "required":
				field.required = true
			case "immutable":
				field.immutable = true
			default:
				field.flags[key] = value
			}
		}
		out[kind] = append(out[kind], field)
	}
	return out
}

// TestCRDSchemas compares the OpenAPI schemas of our CustomResourceDefinitions with the facts, field by field: type, optionality,
// enumerations, patterns, limits, defaults and list types.
func TestCRDSchemas(t *testing.T) {
	factsDir(t)
	list, used := allowedIn(t, "allowed-crds.txt"), map[string]bool{}
	groups := make([]string, 0, len(ourCRDs))
	for group := range ourCRDs {
		if !slices.Contains(foreignGroups, group) {
			groups = append(groups, group)
		}
	}
	sort.Strings(groups)
	for _, group := range groups {
		t.Run(group, func(t *testing.T) {
			facts := readCRDFields(t, group+"_v1alpha1")
			definitions, err := ourCRDs[group]()
			if err != nil {
				t.Fatal(err)
			}
			c := &crdComparison{differ: func(format string, args ...any) {
				if difference := fmt.Sprintf(format, args...); !isAllowed(list, used, difference) {
					t.Error(difference)
				}
			}}
			for _, crd := range definitions {
				fields, ok := facts[crd.Spec.Names.Kind]
				if !ok {
					t.Errorf("extra: %s", crd.Name)
				}
				delete(facts, crd.Spec.Names.Kind)
				c.kind(crd.Name, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, fields)
			}
			for kind := range facts {
				t.Errorf("missing: %s", kind)
			}
			t.Logf("fields expected %d, present %d, wrong %d, extra %d", c.expected, c.present, c.wrong, c.extra)
		})
	}
	for pattern := range list {
		if !used[pattern] {
			t.Errorf("allowed-crds.txt: %q is not a difference any more", pattern)
		}
	}
}

type crdComparison struct {
	expected, present, wrong, extra int
	differ                          func(format string, args ...any)
}

// foreign types are not listed field by field, so what is below them in OpenAPI is no difference.
func foreignType(typ string) bool {
	prefix, _, ok := strings.Cut(strings.TrimRight(typ, "[]"), ".")
	return ok && !strings.HasPrefix(prefix, "core/") && !strings.HasPrefix(prefix, "map<")
}

func (c *crdComparison) kind(name string, root *apiextensionsv1.JSONSchemaProps, fields []crdField) {
	byPath := map[string]crdField{}
	for _, f := range fields {
		byPath[f.path] = f
	}
	for _, want := range fields {
		c.expected++
		have, parent, ok := lookup(root, want.path)
		if !ok {
			c.differ("missing: %s %s", name, want.path)
			continue
		}
		c.present++
		if problem := checkSchema(want, have); problem != "" {
			c.wrong++
			c.differ("wrong: %s %s %s", name, want.path, problem)
		}
		leaf := want.path[strings.LastIndex(want.path, ".")+1:]
		// Metadata has no description of its own in OpenAPI, and Go types with an optional spec or status have them as values.
		if got := slices.Contains(parent.Required, leaf); got != want.required {
			c.differ("required: %s %s is %v instead of %v", name, want.path, got, want.required)
		}
	}
	var extra []string
	collect(root, "", func(path string) bool {
		want, ok := byPath[path]
		if !ok {
			extra = append(extra, path)
			return false
		}
		return !foreignType(want.typ)
	})
	for _, path := range extra {
		if path == "apiVersion" || path == "kind" {
			continue
		}
		c.extra++
		c.differ("extra: %s %s", name, path)
	}
}

// lookup finds a property by its path in a schema, and the schema of the object that has it.
func lookup(schema *apiextensionsv1.JSONSchemaProps, path string) (have, parent *apiextensionsv1.JSONSchemaProps, ok bool) {
	for _, segment := range strings.Split(path, ".") {
		name := strings.TrimRight(segment, "[]{}")
		parent = schema
		property, found := schema.Properties[name]
		if !found {
			return nil, nil, false
		}
		have, schema = &property, &property
		for rest := strings.TrimPrefix(segment, name); rest != ""; {
			if trimmed, isList := strings.CutPrefix(rest, "[]"); isList && schema.Items != nil {
				schema, rest = schema.Items.Schema, trimmed
			} else if trimmed, isMap := strings.CutPrefix(rest, "{}"); isMap && schema.AdditionalProperties != nil {
				schema, rest = schema.AdditionalProperties.Schema, trimmed
			} else {
				return nil, nil, false
			}
		}
	}
	return have, parent, true
}

// collect calls visit for every property; visit says whether to go on below it.
func collect(schema *apiextensionsv1.JSONSchemaProps, prefix string, visit func(path string) bool) {
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		property := schema.Properties[name]
		if !visit(prefix + name) {
			continue
		}
		path := prefix + name
		below := &property
		for below != nil {
			switch {
			case below.Items != nil:
				below, path = below.Items.Schema, path+"[]"
				continue
			case below.AdditionalProperties != nil && below.AdditionalProperties.Schema != nil:
				below, path = below.AdditionalProperties.Schema, path+"{}"
				continue
			}
			break
		}
		collect(below, path+".", visit)
	}
}

// jsonTypes are the OpenAPI types of the type names in schemas that are not objects.
var jsonTypes = map[string]string{
	"string": "string", "boolean": "boolean", "bytes": "string", "integer": "integer", "int": "integer", "int32": "integer", "int64": "integer",
	"uint32": "integer", "float32": "number", "float64": "number", "metav1.Time": "string", "metav1.Duration": "string",
	"resource.Quantity": "int-or-string", "intstr.IntOrString": "int-or-string", "apiextensionsv1.JSON": "", "metav1.LabelSelector": "object",
}

func checkSchema(want crdField, have *apiextensionsv1.JSONSchemaProps) string {
	var problems []string
	differ := func(what string, want, got any) {
		problems = append(problems, fmt.Sprintf("has %s %v instead of %v", what, got, want))
	}

	typ, elem := want.typ, have
	for strings.HasSuffix(typ, "[]") {
		typ = strings.TrimSuffix(typ, "[]")
		if elem.Type != "array" || elem.Items == nil {
			return "is no list"
		}
		elem = elem.Items.Schema
	}
	if value, ok := strings.CutPrefix(typ, "map<string,"); ok {
		typ = strings.TrimSuffix(value, ">")
		if elem.Type != "object" || elem.AdditionalProperties == nil {
			return "is no map"
		}
		elem = elem.AdditionalProperties.Schema
		for strings.HasSuffix(typ, "[]") {
			typ, elem = strings.TrimSuffix(typ, "[]"), elem.Items.Schema
		}
	}
	wantType, known := jsonTypes[typ]
	if !known {
		wantType = "object"
	}
	gotType := elem.Type
	if elem.XIntOrString {
		gotType = "int-or-string"
	}
	if gotType != wantType {
		differ("type", wantType, gotType)
	}
	if typ == "int32" || typ == "int64" {
		if elem.Format != typ {
			differ("format", typ, elem.Format)
		}
	}
	if (typ == "runtime.RawExtension" || typ == "apiextensionsv1.JSON") && (elem.XPreserveUnknownFields == nil || !*elem.XPreserveUnknownFields) {
		problems = append(problems, "drops unknown fields")
	}

	for flag, value := range want.flags {
		switch flag {
		case "enum":
			var got []string
			for _, v := range elem.Enum {
				got = append(got, strings.Trim(string(v.Raw), `"`))
			}
			wantValues := strings.Split(strings.ReplaceAll(value, `""`, ""), "|")
			sort.Strings(got)
			sort.Strings(wantValues)
			if !slices.Equal(got, wantValues) {
				differ("values", wantValues, got)
			}
		case "pattern":
			if elem.Pattern != value {
				differ("pattern", value, elem.Pattern)
			}
		case "min", "max":
			got := elem.Minimum
			if flag == "max" {
				got = elem.Maximum
			}
			if limit, _ := strconv.ParseFloat(value, 64); got == nil || *got != limit {
				differ(flag, value, got)
			}
		case "minLen", "maxLen", "minItems", "maxItems", "minProps", "maxProps":
			got := map[string]*int64{
				"minLen": elem.MinLength, "maxLen": elem.MaxLength, "minItems": have.MinItems, "maxItems": have.MaxItems,
				"minProps": elem.MinProperties, "maxProps": elem.MaxProperties,
			}[flag]
			if limit, _ := strconv.ParseInt(value, 10, 64); got == nil || *got != limit {
				differ(flag, value, got)
			}
		case "default":
			got := "nothing"
			if have.Default != nil {
				got = strings.Trim(string(have.Default.Raw), `"`)
			}
			if got != value {
				differ("default", value, got)
			}
		case "listType":
			if have.XListType == nil || *have.XListType != value {
				differ("list type", value, have.XListType)
			}
		case "nullable":
			if !have.Nullable {
				problems = append(problems, "is not nullable")
			}
		}
	}
	return strings.Join(problems, ", ")
}
