package tunnel

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// peers are the connections that streams can be opened over.
type peers struct {
	mu      sync.Mutex
	all     []*peer
	changed chan struct{}
	// replacement is replacementTimeout, except in tests.
	replacement time.Duration
}

func newPeers() *peers { return &peers{changed: make(chan struct{}), replacement: replacementTimeout} }

// notify closes the channel of a change.
func (s *peers) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

func (s *peers) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *peers) add(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
	s.wake()
}

func (s *peers) remove(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *peer) bool { return other == p })
	s.wake()
}

// list returns the peers, and a channel that is closed when something changes.
func (s *peers) list() ([]*peer, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all), s.changed
}

// drain requests that all peers open no more streams, and returns when they have other peers, or after replacementTimeout.
func (s *peers) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.replacement)
	defer cancel()
	all, _ := s.list()
	var running sync.WaitGroup
	for _, p := range all {
		running.Go(func() { p.drain(ctx) })
	}
	running.Wait()
}

// usable returns the healthy peers, those with the fewest streams first, and a channel that is closed when something changes. Drained peers
// are only returned if there are no others.
func (s *peers) usable() ([]*peer, <-chan struct{}) {
	all, changed := s.list()
	all = slices.DeleteFunc(all, func(p *peer) bool { return !p.healthy.Load() || p.session.IsClosed() })
	if undrained := slices.DeleteFunc(slices.Clone(all), func(p *peer) bool { return p.drained.Load() }); len(undrained) > 0 {
		all = undrained
	}
	slices.SortStableFunc(all, func(a, b *peer) int { return cmp.Compare(a.session.NumStreams(), b.session.NumStreams()) })
	return all, changed
}

// awaitUndrained waits until there is a usable peer that is not drained, or until the context ends.
func (s *peers) awaitUndrained(ctx context.Context) {
	for {
		usable, changed := s.usable()
		if len(usable) > 0 && !usable[0].drained.Load() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// connect opens a stream over the best connection. It waits for one until the context ends.
func (s *peers) connect(ctx context.Context, req request) (*yamux.Stream, error) {
	for {
		usable, changed := s.usable()
		var busy error
		for _, p := range usable {
			stream, err := p.connect(ctx, req)
			if err == nil || errors.Is(err, errForbidden) || errors.Is(err, errUnreachable) || ctx.Err() != nil {
				return stream, err
			}
			if errors.Is(err, errBusy) {
				busy = err
			}
			// The connection is broken or has too many streams; try the next one.
		}
		if busy != nil {
			return nil, busy
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errDisconnected
		}
	}
}
