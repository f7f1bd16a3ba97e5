package schema

import (
	"reflect"
	"slices"
	"strings"
)

// convert returns the JSON schema for a schema of OpenAPI. Unlike that, it refuses unknown fields, as API servers do with strict validation, and allows
// null for optional fields, which is the same as no value. Those of gardener-apiserver are all optional for clients: its definitions require what has a
// default, too.
func convert(in object, optional bool) object {
	out := object{}
	for key, value := range in {
		switch key {
		case "properties":
			required, _ := in["required"].([]any)
			properties := object{}
			for name, property := range value.(object) {
				converted := convert(property.(object), optional)
				if optional || !slices.Contains(required, any(name)) {
					converted = orNull(converted)
				}
				properties[name] = converted
			}
			out[key] = properties
		case "items", "additionalProperties":
			if schema, ok := value.(object); ok {
				value = convert(schema, optional)
			}
			out[key] = value
		case "allOf", "anyOf", "oneOf", "not":
			out[key] = conditions(value, optional)
		case "$ref":
			out[key] = definitionsPrefix + strings.TrimPrefix(value.(string), componentsPrefix)
		case "default":
			// Generated definitions have the zero value as default of fields that are always written.
			if !isZero(value) {
				out[key] = value
			}
		case "required":
			if !optional {
				out[key] = value
			}
		case "nullable", "example", "externalDocs":
		default:
			if !strings.HasPrefix(key, "x-") {
				out[key] = value
			}
		}
	}
	if in["x-kubernetes-int-or-string"] == true || in["format"] == "int-or-string" {
		delete(out, "type")
		delete(out, "format")
		delete(out, "oneOf")
		out["anyOf"] = []any{object{"type": "integer"}, object{"type": "string"}}
	}
	if _, closed := in["additionalProperties"]; !closed && out["properties"] != nil && in["x-kubernetes-preserve-unknown-fields"] != true &&
		in["x-kubernetes-embedded-resource"] != true {
		out["additionalProperties"] = false
	}
	if in["nullable"] == true {
		out = orNull(out)
	}
	return out
}

// conditions converts the schemas of a junction. Those that do not refer to others name some of the fields only, so that none are unknown.
func conditions(value any, optional bool) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, 0, len(value))
		for _, v := range value {
			list = append(list, conditions(v, optional))
		}
		return list
	case object:
		out := convert(value, optional)
		if value["additionalProperties"] == nil {
			delete(out, "additionalProperties")
		}
		return out
	}
	return value
}

// orNull returns a schema that allows null, too.
func orNull(schema object) object {
	if typ, ok := schema["type"].(string); ok && schema["enum"] == nil {
		schema["type"] = []any{typ, "null"}
		return schema
	}
	if reflect.DeepEqual(schema, object{}) || len(schema) == 1 && schema["description"] != nil {
		return schema // anything
	}
	out := object{}
	if description, ok := schema["description"]; ok {
		out["description"] = description
		delete(schema, "description")
	}
	out["anyOf"] = []any{schema, object{"type": "null"}}
	return out
}

func isZero(value any) bool {
	switch value := value.(type) {
	case object:
		return len(value) == 0
	case string:
		return value == ""
	case float64:
		return value == 0
	case bool:
		return !value
	}
	return value == nil
}
