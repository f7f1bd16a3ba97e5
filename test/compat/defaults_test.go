package compat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestConfigurationDefaults gives configurations in which every section exists but nothing is set, and every switch is on, to the
// defaulting functions, and compares what comes out with the schemas.
// Defaults of list elements are left out: there is none.
func TestConfigurationDefaults(t *testing.T) {
	factsDir(t)
	for _, g := range groups {
		if !strings.HasPrefix(g.pkg, "config/") {
			continue
		}
		scheme := runtime.NewScheme()
		if err := g.addToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		facts := readCRDFields(t, g.schema)
		for kind, typ := range g.kinds() {
			t.Run(g.pkg+"/"+kind, func(t *testing.T) {
				var checked int
				value := reflect.New(typ)
				obj, ok := value.Interface().(runtime.Object)
				if !ok {
					t.Skip("no kind of its own")
				}
				allocate(value.Elem())
				scheme.Default(obj)
				got := map[string]any{}
				data, err := json.Marshal(obj)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(data, &got); err != nil {
					t.Fatal(err)
				}
				for _, field := range facts[kind] {
					for flag, want := range field.flags {
						if flag != "default" && flag != "defaultIf(enabled)" || strings.Contains(field.path, "[]") {
							continue
						}
						checked++
						if have := valueAt(got, field.path); have != strings.Trim(want, `"`) {
							t.Errorf("%s is %q instead of %q", field.path, have, want)
						}
					}
				}
				t.Logf("%d defaults", checked)
			})
		}
	}
}

// allocate makes every section that a configuration may have, and sets every switch named Enabled that is no pointer.
func allocate(value reflect.Value) {
	for i := range value.NumField() {
		field := value.Field(i)
		if !field.CanSet() {
			continue
		}
		if field.Kind() == reflect.Pointer && expanded(field.Type().Elem()) {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		switch {
		case field.Kind() == reflect.Struct && expanded(field.Type()):
			allocate(field)
		case field.Kind() == reflect.Bool && value.Type().Field(i).Name == "Enabled":
			field.SetBool(true)
		}
	}
}

func valueAt(object map[string]any, path string) string {
	var value any = object
	for _, name := range strings.Split(path, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			return "missing"
		}
		if value, ok = fields[name]; !ok {
			return "missing"
		}
	}
	switch value := value.(type) {
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case map[string]any:
		data, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return string(data)
	}
	return fmt.Sprint(value)
}
