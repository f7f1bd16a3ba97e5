package plant

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	// checksPerNamespace is how many clusters of a namespace are checked at the same time, so that slow ones of one project do not take all workers.
	checksPerNamespace = 2
	// retryTurn is when a Plant is tried again while others of its namespace are checked.
	retryTurn = time.Second
	// maxPause is the longest pause between checks of a cluster that does not answer, unless the sync period is longer.
	maxPause = 5 * time.Minute
)

// checked is what a check depends on. After a change of it, the cluster may answer.
type checked struct {
	plant           types.UID
	generation      int64
	secret          types.UID
	resourceVersion string
}

func checkedOf(plant *corev1beta1.Plant, secret *corev1.Secret) checked {
	of := checked{plant: plant.UID, generation: plant.Generation}
	if secret != nil {
		of.secret, of.resourceVersion = secret.UID, secret.ResourceVersion
	}
	return of
}

// pauses are those between checks of clusters that do not answer. They are not kept over a restart.
type pauses struct {
	lock sync.Mutex
	of   map[types.NamespacedName]pause
}

type pause struct {
	checked checked
	length  time.Duration
}

// next returns the pause after a check, which is twice as long as the one before if the cluster did not answer in both.
func (p *pauses) next(plant types.NamespacedName, what checked, answered bool, syncPeriod time.Duration) time.Duration {
	if answered {
		p.forget(plant)
		return syncPeriod
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	length := syncPeriod
	if before, found := p.of[plant]; found && before.checked == what {
		length = min(2*before.length, max(maxPause, syncPeriod))
	}
	if p.of == nil {
		p.of = map[types.NamespacedName]pause{}
	}
	p.of[plant] = pause{what, length}
	return length
}

func (p *pauses) forget(plant types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.of, plant)
}

// answered returns whether the cluster has answered all requests of a check. An error status is an answer, others are none: they may have taken a
// worker for as long as a check may take.
func (o *observed) answered() bool {
	for _, err := range []error{o.healthzError, o.versionError, o.nodesError} {
		var status *statusError
		if err != nil && !errors.As(err, &status) {
			return false
		}
	}
	return true
}
