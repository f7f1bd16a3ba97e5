// Package everyfield checks that every field of a configuration has an effect.
package everyfield

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Suite configures which fields of T are set, and how their effect is rendered.
type Suite[T any] struct {
	// Base returns the configuration whose field is set. Nil means an empty T.
	Base func() *T
	// Render returns the result of a configuration.
	Render func(t *testing.T, config *T) string
	// Values are two values for fields by their path, such as "mode", for fields that do not accept any value of their type.
	Values map[string][2]any
	// Exceptions are fields without an effect by their path, with the reason. Fields below them are left out, too.
	Exceptions map[string]string
}

// Run sets one field of T after the other to two values, and checks that the results differ. An exception with an effect is an error, so
// that the list stays correct. Elements of lists have the path of the list with "[]", keys of maps have none.
func Run[T any](t *testing.T, s Suite[T]) {
	t.Helper()
	if s.Base == nil {
		s.Base = func() *T { return new(T) }
	}
	used := map[string]bool{}
	walk(reflect.TypeFor[T](), "", func(v reflect.Value) reflect.Value { return v }, func(path string, typ reflect.Type, at place) {
		except := ""
		for prefix := range s.Exceptions {
			if path == prefix || strings.HasPrefix(path, prefix+".") || strings.HasPrefix(path, prefix+"[]") {
				except, used[prefix] = prefix, true
			}
		}
		t.Run(path, func(t *testing.T) {
			values, ok := s.Values[path]
			used[path] = true
			if !ok {
				values = two(t, typ)
			}
			var rendered [2]string
			for i, value := range values {
				config := s.Base()
				at(reflect.ValueOf(config).Elem()).Set(reflect.ValueOf(value).Convert(typ))
				rendered[i] = s.Render(t, config)
			}
			switch same := rendered[0] == rendered[1]; {
			case same && except == "":
				t.Errorf("%s has no effect: %v and %v have the same result", path, values[0], values[1])
			case !same && except == path:
				t.Errorf("%s has an effect; remove the exception", path)
			}
		})
	})
	for path := range s.Exceptions {
		if !used[path] {
			t.Errorf("exception %s: no such field", path)
		}
	}
	for path := range s.Values {
		if !used[path] {
			t.Errorf("values for %s: no such field", path)
		}
	}
}

// YAML is a result for Render; it takes the two results of a function that renders objects. It is JSON, which is YAML, too: the order of keys such as
// configmap-9e83414f, configmap-113daf41 and configmap-1a9e36aa differs each time with the encoder for YAML, as it compares numbers in them.
func YAML(t *testing.T, objects any, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(objects, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// place returns a field of a configuration, and creates its parents.
type place func(config reflect.Value) reflect.Value

// leaves are types whose values are set as a whole.
var leaves = []reflect.Type{
	reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
	reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.Time](),
}

func walk(typ reflect.Type, path string, at place, visit func(string, reflect.Type, place)) {
	switch {
	case typ.Kind() == reflect.Pointer:
		walk(typ.Elem(), path, func(config reflect.Value) reflect.Value {
			v := at(config)
			if v.IsNil() {
				v.Set(reflect.New(typ.Elem()))
			}
			return v.Elem()
		}, visit)
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8:
		walk(typ.Elem(), path+"[]", func(config reflect.Value) reflect.Value {
			v := at(config)
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(typ, 1, 1))
			}
			return v.Index(0)
		}, visit)
	case typ.Kind() == reflect.Struct && !slices.Contains(leaves, typ):
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "" && strings.Contains(options, "inline"):
				name = path
			case path != "":
				name = path + "." + name
			}
			walk(field.Type, name, func(config reflect.Value) reflect.Value { return at(config).Field(i) }, visit)
		}
	default:
		visit(path, typ, at)
	}
}

// two returns two values of a type.
func two(t *testing.T, typ reflect.Type) [2]any {
	t.Helper()
	switch typ {
	case reflect.TypeFor[metav1.Duration]():
		return [2]any{metav1.Duration{Duration: 77 * time.Second}, metav1.Duration{Duration: 78 * time.Second}}
	case reflect.TypeFor[metav1.Time]():
		return [2]any{metav1.Unix(77, 0), metav1.Unix(78, 0)}
	case reflect.TypeFor[resource.Quantity]():
		return [2]any{resource.MustParse("77Mi"), resource.MustParse("78Mi")}
	case reflect.TypeFor[intstr.IntOrString]():
		return [2]any{intstr.FromInt32(77), intstr.FromInt32(78)}
	case reflect.TypeFor[runtime.RawExtension]():
		return [2]any{runtime.RawExtension{Raw: []byte(`{"some":77}`)}, runtime.RawExtension{Raw: []byte(`{"some":78}`)}}
	}
	switch typ.Kind() {
	case reflect.Bool:
		return [2]any{false, true}
	case reflect.String:
		return [2]any{"some", "other"}
	case reflect.Int32, reflect.Int64:
		return [2]any{77, 78}
	case reflect.Float64:
		return [2]any{0.77, 0.78}
	case reflect.Map:
		var maps [2]any
		for i, value := range two(t, typ.Elem()) {
			m := reflect.MakeMap(typ)
			m.SetMapIndex(reflect.ValueOf("some").Convert(typ.Key()), reflect.ValueOf(value).Convert(typ.Elem()))
			maps[i] = m.Interface()
		}
		return maps
	default:
		t.Fatalf("no values for type %s: add two in Values", typ)
	}
	return [2]any{}
}
