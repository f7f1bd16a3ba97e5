package graph

import (
	"cmp"
	"slices"
)

// Neighbours is an object with the objects that edges lead to it from, and from it to.
type Neighbours struct {
	Key     Key
	In, Out []Key
}

// Describe returns objects with their neighbours, in order. Edges that count for others than the scope are left out, and so are those that
// follow from names. It looks at all edges, and is for debugging.
func (g *Graph) Describe(scope Scope, include func(Key) bool) []Neighbours {
	g.lock.RLock()
	defer g.lock.RUnlock()
	found := map[id]*Neighbours{}
	for key, v := range g.ids {
		if include(key) {
			found[v] = &Neighbours{Key: key}
		}
	}
	for _, declarer := range g.ids {
		for _, e := range g.vertices[declarer].edges {
			if e.scope != Both && e.scope != scope {
				continue
			}
			if n := found[e.from]; n != nil {
				n.Out = append(n.Out, g.vertices[e.to].key)
			}
			if n := found[e.to]; n != nil {
				n.In = append(n.In, g.vertices[e.from].key)
			}
		}
	}
	list := make([]Neighbours, 0, len(found))
	for _, n := range found {
		n.In, n.Out = inOrder(n.In), inOrder(n.Out)
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b Neighbours) int { return compareKeys(a.Key, b.Key) })
	return list
}

func inOrder(keys []Key) []Key {
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
