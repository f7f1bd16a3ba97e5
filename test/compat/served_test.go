package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// TestServed compares a running garden with the facts.
func TestServed(t *testing.T) {
	factsDir(t)
	// Examples leave parts to the reader, so what they refer to does not exist. Labels of extensions that are filled in by another
	// plugin come with the second request only: the order of the plugins is given.
	e := env.Start(t, env.Flags("--disable-admission-plugins="+
		"ExtensionLabels,ExtensionValidator,ManagedSeed,ResourceReferenceManager,ShootTolerationRestriction,ShootValidator"))
	t.Run("OpenAPI", func(t *testing.T) { testServedOpenAPI(t, e) })
	t.Run("Examples", func(t *testing.T) { testServedExamples(t, e) })
}

// openAPI is what a server says about its types.
type openAPI struct {
	Components struct {
		Schemas map[string]*openAPISchema `json:"schemas"`
	} `json:"components"`
}

// openAPISchema is a type. References to others are resolved by openAPI.resolve.
type openAPISchema struct {
	Ref        string                    `json:"$ref"`
	AllOf      []*openAPISchema          `json:"allOf"`
	OneOf      []*openAPISchema          `json:"oneOf"`
	Type       string                    `json:"type"`
	Format     string                    `json:"format"`
	Items      *openAPISchema            `json:"items"`
	Additional *openAPISchema            `json:"additionalProperties"`
	Properties map[string]*openAPISchema `json:"properties"`
	Required   []string                  `json:"required"`
	Kinds      []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// resolve follows references.
func (o *openAPI) resolve(s *openAPISchema) *openAPISchema {
	for s != nil {
		switch {
		case s.Ref != "":
			s = o.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.AllOf) == 1 && s.Type == "" && s.Properties == nil:
			s = s.AllOf[0]
		default:
			return s
		}
	}
	return nil
}

// element returns what lists and maps in a schema hold, and how a path says so.
func (o *openAPI) element(s *openAPISchema) (elem *openAPISchema, suffix string) {
	for elem = o.resolve(s); elem != nil; {
		switch {
		case elem.Type == "array":
			elem, suffix = o.resolve(elem.Items), suffix+"[]"
		case elem.Type == "object" && elem.Additional != nil:
			elem, suffix = o.resolve(elem.Additional), suffix+"{}"
		default:
			return elem, suffix
		}
	}
	return nil, suffix
}

// servedField is a field that the server describes.
type servedField struct {
	typ      string
	required bool
}

// fields lists the fields of a type by their paths; below says which of them to look into.
func (o *openAPI) fields(s *openAPISchema, prefix string, below func(path string) bool, out map[string]servedField) {
	for name, property := range s.Properties {
		path := prefix + name
		elem, suffix := o.element(property)
		out[path] = servedField{typ: jsonType(elem) + suffix, required: slices.Contains(s.Required, name)}
		if elem != nil && below(path) {
			o.fields(elem, path+suffix+".", below, out)
		}
	}
}

// jsonType names the type of what a schema describes.
func jsonType(s *openAPISchema) string {
	switch {
	case s == nil:
		return "nothing"
	case len(s.OneOf) > 0 || s.Format == "int-or-string":
		return "int-or-string"
	}
	return s.Type
}

// wantedType is the type that a field of the facts has in OpenAPI: that of its innermost elements, then "[]" and "{}".
func wantedType(typ string) string {
	suffix := ""
	for {
		if elem, ok := strings.CutSuffix(typ, "[]"); ok {
			typ, suffix = elem, suffix+"[]"
		} else if elem, ok := strings.CutPrefix(typ, "map<string,"); ok {
			typ, suffix = strings.TrimSuffix(elem, ">"), suffix+"{}"
		} else {
			break
		}
	}
	switch typ {
	case "corev1.ResourceList":
		return "int-or-string" + suffix + "{}"
	case "corev1.ResourceName", "metav1.MicroTime":
		return "string" + suffix
	}
	if known, ok := jsonTypes[typ]; ok {
		return known + suffix
	}
	return "object" + suffix
}

// testServedOpenAPI compares the fields that the server describes with the schemas.
func testServedOpenAPI(t *testing.T, e *env.Env) {
	list, used := allowedIn(t, "allowed-served.txt"), map[string]bool{}
	for _, g := range groups {
		if !g.hasProtobuf() || g.schema == "" {
			continue
		}
		t.Run(g.schema, func(t *testing.T) {
			group, version, _ := strings.Cut(g.schema, "_")
			differ := func(format string, args ...any) {
				difference := g.schema + " " + fmt.Sprintf(format, args...)
				if !isAllowed(list, used, difference) {
					t.Error(difference)
				}
			}
			raw, status := fetch(t, e, "/openapi/v3/apis/"+group+"/"+version)
			if status != http.StatusOK || len(raw) == 0 {
				differ("missing: the group")
				return
			}
			spec := &openAPI{}
			if err := json.Unmarshal(raw, spec); err != nil {
				t.Fatal(err)
			}
			kinds := map[string]*openAPISchema{}
			for _, s := range spec.Components.Schemas {
				for _, gvk := range s.Kinds {
					if gvk.Group == group && gvk.Version == version && !strings.HasSuffix(gvk.Kind, "List") && gvk.Kind != "DeleteOptions" && gvk.Kind != "WatchEvent" {
						kinds[gvk.Kind] = s
					}
				}
			}
			var expected, present, wrong, extra int
			facts := readSchema(t, g.schema)
			for _, kind := range slices.Sorted(maps.Keys(facts)) {
				expected += len(facts[kind])
				root := kinds[kind]
				delete(kinds, kind)
				if root == nil {
					differ("missing: %s", kind)
					continue
				}
				wanted := map[string]schemaField{}
				for _, f := range facts[kind] {
					wanted[f.path] = f
				}
				got := map[string]servedField{}
				spec.fields(root, "", func(path string) bool {
					want, ok := wanted[path]
					return ok && !foreignType(want.typ)
				}, got)
				for _, want := range facts[kind] {
					have, ok := got[want.path]
					if !ok {
						differ("missing: %s %s", kind, want.path)
						continue
					}
					delete(got, want.path)
					present++
					if wantType := wantedType(want.typ); have.typ != wantType {
						wrong++
						differ("type: %s %s is %s instead of %s", kind, want.path, have.typ, wantType)
					}
					if have.required != want.required {
						differ("required: %s %s is %v instead of %v", kind, want.path, have.required, want.required)
					}
				}
				delete(got, "apiVersion")
				delete(got, "kind")
				extra += len(got)
				for _, path := range slices.Sorted(maps.Keys(got)) {
					differ("extra: %s %s", kind, path)
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				got := map[string]servedField{}
				spec.fields(kinds[kind], "", func(path string) bool { return path != "metadata" }, got)
				extra += len(got)
				differ("extra: %s", kind)
			}
			t.Logf("fields expected %d, present %d, wrong type %d, extra %d", expected, present, wrong, extra)
		})
	}
	for pattern := range list {
		if !used[pattern] {
			t.Errorf("allowed-served.txt: %q is not a difference any more", pattern)
		}
	}
}

// fetch sends a request of the administrator to gardener-apiserver: the aggregator learns of OpenAPI documents a while later.
func fetch(t *testing.T, e *env.Env, path string) (body []byte, status int) {
	t.Helper()
	c, err := rest.HTTPClientFor(e.Direct)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Direct.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, response.StatusCode
}

// testServedExamples sends the example manifests the way users do. What they say comes back, and applying them again changes nothing.
func testServedExamples(t *testing.T, e *env.Env) {
	installCRDs(t, e)
	manifests := readExamples(t, e)
	if len(manifests) == 0 {
		t.Fatal("no examples")
	}
	namespaces := map[string]bool{}
	for _, m := range manifests {
		if namespace := m.object.GetNamespace(); namespace != "" && !namespaces[namespace] {
			namespaces[namespace] = true
			err := e.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			if client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	// The profile that the shoots of provider-local name is in no example.
	local := builder.CloudProfile(builder.Local, builder.Versions("1.36.0"))

	if err := e.Client.Create(t.Context(), local); err != nil {
		t.Fatal(err)
	}
	apply := func(t *testing.T, m manifest, options ...client.ApplyOption) *unstructured.Unstructured {
		t.Helper()
		obj := m.object.DeepCopy()
		err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj),
			append(options, client.FieldOwner("test"), client.ForceOwnership)...)
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	name := func(m manifest) string {
		return filepath.ToSlash(m.file) + "/" + m.object.GetKind() + "-" + m.object.GetName()
	}
	var accepted int
	answers := map[string]*unstructured.Unstructured{}
	for _, m := range manifests {
		ok := t.Run(name(m), func(t *testing.T) {
			apply(t, m, client.DryRunAll)
			first := apply(t, m)
			if lost := missing("", m.object.Object, first.Object); len(lost) > 0 {
				t.Errorf("lost or changed: %q", lost)
			}
			answers[name(m)] = first
		})
		if ok {
			accepted++
		}
	}
	// That is in a later second than the first time for most of them, so that times which are set again would differ.
	for _, m := range manifests {
		t.Run("again/"+name(m), func(t *testing.T) {
			if again := apply(t, m); again.GetResourceVersion() != answers[name(m)].GetResourceVersion() {
				t.Errorf("applying it a second time wrote to the store (-was +is):\n%s", cmp.Diff(answers[name(m)], again))
			}
		})
	}
	t.Logf("%d of %d manifests accepted", accepted, len(manifests))
}

// manifest is an object of an example file.
type manifest struct {
	file   string
	object *unstructured.Unstructured
}

// noManifests are example files that hold no API objects.
var noManifests = []string{"componentconfig", "admissionconfig", "encryptionconfiguration", "gardenletconfig"}

// readExamples returns the objects of the example files in the order of the files' names. Kinds that are not served are ignored:
// configurations of processes.
func readExamples(t *testing.T, e *env.Env) []manifest {
	t.Helper()
	root := filepath.Join(factsDir(t), "examples")
	var out []manifest
	var foreign []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(noManifests, func(part string) bool { return strings.Contains(file, part) }) {
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		for decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096); decoder != nil; {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(&obj.Object); err != nil {
				if !strings.Contains(err.Error(), "EOF") {
					t.Errorf("%s: %v", file, err)
				}
				break
			}
			if len(obj.Object) == 0 {
				continue
			}
			if strings.HasSuffix(obj.GetKind(), "WebhookConfiguration") {
				continue // of a process that does not run here, so that it would refuse what follows
			}
			mapping, err := e.Client.RESTMapper().RESTMapping(obj.GroupVersionKind().GroupKind(), obj.GroupVersionKind().Version)
			if err != nil {
				foreign = append(foreign, file+": "+obj.GetKind())
				continue
			}
			fillIn(obj, mapping.Scope.Name() == meta.RESTScopeNameNamespace)
			out = append(out, manifest{file, obj})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("left out, as they are not served: %q", foreign)
	slices.SortStableFunc(out, func(a, b manifest) int { return strings.Compare(filepath.Base(a.file), filepath.Base(b.file)) })
	return out
}

// completions add what some examples leave to the reader.
var completions = map[string]map[string]any{
	"Seed my-seed": {"spec.provider.zones": []any{"europe-1a", "europe-1b"}},
	"CloudProfile cloudprofile1": {"spec.machineImages": []any{
		map[string]any{"name": "filled-in", "versions": []any{map[string]any{"version": "1.0.0", "expirationDate": "2099-01-01T00:00:00Z"}}},
	}},
	"Gardenlet filled-in": {"spec.deployment.helm.ociRepository.tag": "v1.0.0"},
	"ManagedSeed my-managed-seed": {"spec.gardenlet.config.seedConfig.spec.dns.internal": map[string]any{
		"type": "local", "domain": "internal.example.org",
		"credentialsRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "internal-domain", "namespace": "garden"},
	}},
}

// fillIn completes an example: placeholders, keys without a value, times that have passed meanwhile.
func fillIn(obj *unstructured.Unstructured, namespaced bool) {
	if namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace("garden-dev")
	}
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				if v[key] = walk(key, v[key]); v[key] == nil {
					delete(v, key)
				}
			}
		case []any:
			for i := range v {
				v[i] = walk(key, v[i])
			}
		case string:
			placeholder := strings.HasPrefix(v, "<") && strings.HasSuffix(v, ">")
			switch {
			case key == "expirationDate":
				return "2099-01-01T00:00:00Z"
			case placeholder && key == "version":
				return "1.0.0"
			case placeholder:
				return "filled-in"
			}
		}
		return v
	}
	walk("", obj.Object)
	if data, ok := obj.Object["data"].(map[string]any); ok && obj.GetKind() == "Secret" {
		for key := range data {
			data[key] = "ZmlsbGVkLWlu"
		}
	}
	for _, name := range []string{obj.GetKind(), obj.GetKind() + " " + obj.GetName()} {
		for path, value := range completions[name] {
			if err := unstructured.SetNestedField(obj.Object, value, strings.Split(path, ".")...); err != nil {
				panic(err)
			}
		}
	}
}

// missing lists the paths of values that are not in an answer, or differ there. Times and quantities may be written in another way.
func missing(path string, want, got any) (out []string) {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			if len(want) == 0 && got == nil {
				return nil
			}
			return []string{path}
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if path == "" && (key == "stringData" || key == "status") {
				continue // not returned, and not set through the main resource
			}
			out = append(out, missing(path+"."+key, want[key], have[key])...)
		}
	case []any:
		have, ok := got.([]any)
		if len(want) == 0 && got == nil {
			return nil
		}
		if !ok || len(have) < len(want) {
			return []string{path}
		}
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])...)
		}
	case nil:
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) && !sameValue(want, got) {
			out = append(out, fmt.Sprintf("%s: %v instead of %v", path, got, want))
		}
	}
	return out
}

// sameValue reports whether two texts are one duration or one quantity.
func sameValue(a, b any) bool {
	textA, textB := fmt.Sprint(a), fmt.Sprint(b)
	durationA, err := time.ParseDuration(textA)
	durationB, err2 := time.ParseDuration(textB)
	if err == nil && err2 == nil {
		return durationA == durationB
	}
	quantityA, err := resource.ParseQuantity(textA)
	quantityB, err2 := resource.ParseQuantity(textB)
	return err == nil && err2 == nil && quantityA.Cmp(quantityB) == 0
}

// installCRDs installs our CustomResourceDefinitions and waits until they are served.
func installCRDs(t *testing.T, e *env.Env) {
	t.Helper()
	if err := apiextensionsv1.AddToScheme(e.Scheme); err != nil {
		t.Fatal(err)
	}
	watching, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, group := range slices.Sorted(maps.Keys(ourCRDs)) {
		list, err := ourCRDs[group]()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	if err := crds.Deploy(t.Context(), watching, "test", all...); err != nil {
		t.Fatal(err)
	}
}
