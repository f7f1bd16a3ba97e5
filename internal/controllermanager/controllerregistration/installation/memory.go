package installation

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// memory keeps the result of the last reconciliation of each seed, so that a Shoot which needs nothing new causes none. It only filters
// events: which extensions are installed follows from the observed objects.
//
// A reconciliation deletes the result for its seed at its start. The cache holds an object before its event is handled. So an event that is
// filtered by the result of a reconciliation either came before it, and the reconciliation has read the object, or comes after it; an event
// that comes during a reconciliation causes another one.
type memory struct {
	mu    sync.Mutex
	seeds map[string]found
}

// found is the result of the reconciliation of a seed.
type found struct {
	seed       *corev1beta1.Seed
	domains    domains
	automatics []automatic
	needs      needs
	shoots     int
}

func newMemory() *memory { return &memory{seeds: map[string]found{}} }

func (m *memory) delete(seed string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seeds, seed)
}

func (m *memory) set(f found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seeds[f.seed.Name] = f
}

func (m *memory) get(seed string) (found, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.seeds[seed]
	return f, ok
}

// covers reports whether a Shoot that is new on a seed needs no further extension there.
func (m *memory) covers(seed string, shoot *corev1beta1.Shoot) bool {
	f, ok := m.get(seed)
	return ok && f.shoots > 0 && f.needs.IsSuperset(f.needsOf(shoot))
}

// same reports whether a Shoot needs the same extensions on a seed after an update as before.
func (m *memory) same(seed string, before, after *corev1beta1.Shoot) bool {
	f, ok := m.get(seed)
	return ok && f.needsOf(before).Equal(f.needsOf(after))
}

func (f found) needsOf(shoot *corev1beta1.Shoot) sets.Set[need] {
	n := needs{sets.New[need]()}
	n.addShoot(shoot, f.seed, f.domains, f.automatics)
	return n.Set
}
