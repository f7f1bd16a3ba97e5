package tunnel

import (
	"context"
	"sync"
)

// busy counts streams. Unlike in a sync.WaitGroup, streams may begin during wait.
type busy struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when the last one ends; nil if wait was not called
}

func (b *busy) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

// beginUnder is begin, unless as many streams as the limit have begun; then it returns false.
func (b *busy) beginUnder(limit int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n >= limit {
		return false
	}
	b.n++
	return true
}

func (b *busy) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// wait returns when all streams have ended, or when the context is done.
func (b *busy) wait(ctx context.Context) {
	b.mu.Lock()
	if b.n == 0 {
		b.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
