package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errChanged ends a flow for a Garden that has another spec now. The change has queued it.
var errChanged = errors.New("the Garden has changed")

// interruptionPeriod is for how long no other change of the spec ends a flow: if two writers change it in turns, passes still end.
const interruptionPeriod = 5 * time.Minute

// interruptions are those of running flows.
type interruptions struct {
	mutex sync.Mutex
	// ends has the functions that end running flows, by the names of their Gardens.
	ends map[string]context.CancelCauseFunc
	// last is when a flow was ended for a change of the spec.
	last time.Time
}

// begin returns the context of a flow that can be interrupted, and a function that must be called at its end.
func (i *interruptions) begin(ctx context.Context, garden string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.ends == nil {
		i.ends = map[string]context.CancelCauseFunc{}
	}
	i.ends[garden] = end
	return ctx, func() {
		i.mutex.Lock()
		defer i.mutex.Unlock()
		delete(i.ends, garden)
		end(nil)
	}
}

// interrupt ends the flow of a Garden, if one runs. A deletion always does.
func (i *interruptions) interrupt(garden string, now time.Time, deleted bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	end, ok := i.ends[garden]
	if !ok || !deleted && now.Sub(i.last) < interruptionPeriod {
		return
	}
	i.last = now
	end(errChanged)
}
