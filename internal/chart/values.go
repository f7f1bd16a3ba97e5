package chart

import (
	"fmt"
	"maps"
	"slices"

	"gardener.cloud/gardener/internal/validation/core"
)

// Merge writes the values of from into into. Where both have a map, the maps are merged.
func Merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		existing, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			Merge(existing, inner)
		} else {
			into[key] = value
		}
	}
}

// expand replaces the placeholders for data of resources in all strings of values, by what data returns.
func expand(value any, data func(resource, key string) (string, error)) (any, error) {
	var err error
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if value[key], err = expand(value[key], data); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		for i := range value {
			if value[i], err = expand(value[i], data); err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
		}
	case string:
		return core.ExpandPlaceholders(value, data)
	}
	return value, nil
}
