package kind

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

var rawExtension = reflect.TypeFor[runtime.RawExtension]()

// compact removes the white space from the JSON that an object embeds. Answers never have it, so that a client which sends
// back what it got changes nothing.
func compact(v reflect.Value) {
	switch {
	case !embedsJSON(v.Type()):
	case v.Type() == rawExtension:
		raw := v.Addr().Interface().(*runtime.RawExtension)
		var out bytes.Buffer
		if err := json.Compact(&out, raw.Raw); err == nil && out.Len() < len(raw.Raw) {
			raw.Raw = out.Bytes()
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			compact(v.Elem())
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			compact(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			compact(v.Field(i))
		}
	}
}

// embeds caches the results of embedsJSON, as there are few types and many objects.
var embeds sync.Map

// embedsJSON reports whether there may be JSON somewhere in values of a type. No type of the garden API has it in a map, or contains itself.
func embedsJSON(t reflect.Type) bool {
	if known, ok := embeds.Load(t); ok {
		return known.(bool)
	}
	found := t == rawExtension
	switch {
	case found:
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		found = embedsJSON(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			found = found || t.Field(i).IsExported() && embedsJSON(t.Field(i).Type)
		}
	}
	embeds.Store(t, found)
	return found
}
