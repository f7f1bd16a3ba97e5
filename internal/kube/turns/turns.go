// Package turns shares the workers of a controller between namespaces, so that slow objects of one project leave some to others.
package turns

import "sync"

// Turns counts the passes that run for objects of each namespace. The zero value is ready to use.
type Turns struct {
	lock    sync.Mutex
	running map[string]int
}

// Take reports whether a pass for an object of a namespace may begin, if at most so many run at once; 0 is no limit. If so, Give ends it.
func (t *Turns) Take(namespace string, most int) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if most > 0 && t.running[namespace] >= most {
		return false
	}
	if t.running == nil {
		t.running = map[string]int{}
	}
	t.running[namespace]++
	return true
}

// Give ends a pass.
func (t *Turns) Give(namespace string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.running[namespace]--; t.running[namespace] == 0 {
		delete(t.running, namespace)
	}
}

// Running returns how many passes run for objects of a namespace.
func (t *Turns) Running(namespace string) int {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.running[namespace]
}
