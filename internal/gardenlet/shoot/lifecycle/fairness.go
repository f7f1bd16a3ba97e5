package lifecycle

import (
	"sync"
	"time"

	"k8s.io/utils/ptr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// retryTurn is when a shoot is tried again while others of its project have the workers that the project may have.
const retryTurn = 5 * time.Second

// turns counts the operations that run in each namespace. Members of a project decide for how long those of their shoots take: what they have in a cluster may
// keep its finalizers, their infrastructure may respond to nothing, and their nodes may delay what is written to them.
type turns struct {
	lock    sync.Mutex
	running map[string]int
}

// take reports whether an operation in a namespace may begin; workers is how many the gardenlet runs at once. If so, give ends it. A project may have three quarters
// of them, so that others have at least one. The namespace garden, in which only operators have shoots, may have all, and there is no limit with a single worker,
// or if their number is not known.
func (t *turns) take(namespace string, workers *int) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if all := ptr.Deref(workers, 0); all > 1 && namespace != constants.GardenNamespace && t.running[namespace] >= all*3/4 {
		return false
	}
	if t.running == nil {
		t.running = map[string]int{}
	}
	t.running[namespace]++
	return true
}

func (t *turns) give(namespace string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.running[namespace]--; t.running[namespace] == 0 {
		delete(t.running, namespace)
	}
}
