package installation

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// memory keeps what the last pass over each seed found, so that a shoot which needs nothing new costs no pass. It decides only
// about events: what is installed follows from what is there.
//
// A pass forgets its seed at its start. The cache knows an object before its event comes. So an event that is judged by what a pass
// found either came before that pass, which has seen the object, or comes after it; and one that comes during the pass leads to
// another.
type memory struct {
	mu    sync.Mutex
	seeds map[string]found
}

// found is what a pass over a seed found.
type found struct {
	seed       *corev1beta1.Seed
	domains    domains
	automatics []automatic
	needs      needs
	shoots     int
}

func newMemory() *memory { return &memory{seeds: map[string]found{}} }

func (m *memory) forget(seed string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seeds, seed)
}

func (m *memory) remember(f found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seeds[f.seed.Name] = f
}

func (m *memory) recall(seed string) (found, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.seeds[seed]
	return f, ok
}

// covers tells whether a shoot that comes to a seed needs nothing new there.
func (m *memory) covers(seed string, shoot *corev1beta1.Shoot) bool {
	f, ok := m.recall(seed)
	return ok && f.shoots > 0 && f.needs.IsSuperset(f.needsOf(shoot))
}

// same tells whether a shoot that changes needs the same in a seed as before.
func (m *memory) same(seed string, before, after *corev1beta1.Shoot) bool {
	f, ok := m.recall(seed)
	return ok && f.needsOf(before).Equal(f.needsOf(after))
}

func (f found) needsOf(shoot *corev1beta1.Shoot) sets.Set[need] {
	n := needs{sets.New[need]()}
	n.addShoot(shoot, f.seed, f.domains, f.automatics)
	return n.Set
}
