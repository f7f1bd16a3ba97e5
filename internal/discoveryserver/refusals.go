package discoveryserver

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
)

// refusals logs once why an object is not served, as any client can repeat its request.
type refusals struct {
	log     logr.Logger
	metrics *metrics

	mu      sync.Mutex
	reasons map[string]refusal
}

// refusal is a reason that was logged, for one object.
type refusal struct {
	uid    types.UID
	reason string
}

func newRefusals(log logr.Logger, m *metrics) *refusals {
	return &refusals{log: log, metrics: m, reasons: map[string]refusal{}}
}

// report records what became of a document of a shoot: nil and other errors end an earlier refusal.
func (r *refusals) report(document string, refused *refusedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.metrics.refused.Set(float64(len(r.reasons))) }()
	if refused == nil {
		delete(r.reasons, document)
		return
	}
	now := refusal{refused.object.GetUID(), refused.reason}
	if r.reasons[document] == now {
		return
	}
	r.reasons[document] = now
	r.log.Info("Refusing to serve", "kind", fmt.Sprintf("%T", refused.object), "namespace", refused.object.GetNamespace(),
		"name", refused.object.GetName(), "reason", refused.reason)
}
