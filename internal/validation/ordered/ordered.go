// Package ordered walks over maps in a fixed order, so that the same mistakes are always answered with the same message.
package ordered

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Map walks over a map in the order of its keys.
func Map[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
