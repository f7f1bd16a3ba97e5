// Package ordered iterates over maps in a fixed order, so that the same mistakes always have the same error.
package ordered

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Map iterates over a map in the order of its keys.
func Map[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
