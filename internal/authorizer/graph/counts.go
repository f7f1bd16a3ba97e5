package graph

// counts says for each seed by how many edges an object leads to it. Seeds are small numbers. Most objects lead to one seed or two; those
// that lead to many, such as a CloudProfile, have an array, so that a look-up does not depend on how many there are.
type counts struct {
	few  []count
	many []uint32
}

type count struct{ seed, n uint32 }

// maxFew is how many seeds are looked up one by one.
const maxFew = 16

func (c *counts) has(seed uint32) bool {
	if c.many != nil {
		return int(seed) < len(c.many) && c.many[seed] > 0
	}
	for _, e := range c.few {
		if e.seed == seed {
			return true
		}
	}
	return false
}

// add counts an edge, and reports whether it is the first for the seed.
func (c *counts) add(seed uint32) bool {
	if c.many == nil {
		for i := range c.few {
			if c.few[i].seed == seed {
				c.few[i].n++
				return false
			}
		}
		if len(c.few) < maxFew {
			c.few = append(c.few, count{seed, 1})
			return true
		}
		for _, e := range c.few {
			c.grow(e.seed)
			c.many[e.seed] = e.n
		}
		c.few = nil
	}
	c.grow(seed)
	c.many[seed]++
	return c.many[seed] == 1
}

func (c *counts) grow(seed uint32) {
	for int(seed) >= len(c.many) {
		c.many = append(c.many, 0)
	}
}

// remove undoes add, and reports whether it was the last edge for the seed.
func (c *counts) remove(seed uint32) bool {
	if c.many != nil {
		c.many[seed]--
		return c.many[seed] == 0
	}
	for i := range c.few {
		if c.few[i].seed != seed {
			continue
		}
		if c.few[i].n--; c.few[i].n > 0 {
			return false
		}
		last := len(c.few) - 1
		c.few[i] = c.few[last]
		c.few = c.few[:last]
		return true
	}
	return false
}

// all returns the seeds.
func (c *counts) all() []uint32 {
	var seeds []uint32
	for _, e := range c.few {
		seeds = append(seeds, e.seed)
	}
	for seed, n := range c.many {
		if n > 0 {
			seeds = append(seeds, uint32(seed))
		}
	}
	return seeds
}
