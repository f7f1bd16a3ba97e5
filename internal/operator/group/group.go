// Package group runs controllers that are needed for a time only: while a Garden exists, or while its virtual cluster can be reached.
//
// The controllers of a group are in a manager of their own, with its own cache, so that their informers end with them. The process goes on.
package group

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Delays before controllers that have failed are started again. The first is short, as most failures are a matter of seconds, such as an API
// server that is being rolled out.
const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// stable is how long controllers have to run until a failure counts as the first one again.
	stable = 5 * time.Minute
)

// Run is what a group is to run.
type Run struct {
	// Key names what the controllers are for. A Run with another key replaces one that is running.
	Key string
	// New returns a manager with the controllers. It is started, and stopped by its context.
	New func(context.Context) (manager.Manager, error)
}

// Group runs controllers. It is added to the manager of the process, so that only the leader runs them.
type Group struct {
	name  string
	clock clock.Clock

	mu      sync.Mutex
	desired *Run
	changed chan struct{}
	running string
}

// New returns a group that runs nothing yet.
func New(name string, clk clock.Clock) *Group {
	return &Group{name: name, clock: clk, changed: make(chan struct{}, 1)}
}

// Set sets what is to run, which is nothing if it is nil. It does not wait.
func (g *Group) Set(run *Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.desired != nil && run != nil && g.desired.Key == run.Key {
		return
	}
	g.desired = run
	select {
	case g.changed <- struct{}{}:
	default: // it is not received yet, and leads to the newest one
	}
}

// Running returns the key of what runs, or nothing.
func (g *Group) Running() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

func (g *Group) want() *Run {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.desired
}

func (g *Group) setRunning(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = key
}

// child is a manager that runs.
type child struct {
	run     *Run
	started time.Time
	stop    context.CancelFunc
	ended   chan error
}

// Start implements manager.Runnable. It returns when the context ends and all controllers have stopped.
func (g *Group) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithValues("controllers", g.name)
	var running *child
	stop := func() {
		if running == nil {
			return
		}
		log.Info("Stopping controllers", "key", running.run.Key)
		running.stop()
		if err := <-running.ended; err != nil {
			log.Error(err, "Controllers failed while they were stopped", "key", running.run.Key)
		}
		running = nil
		g.setRunning("")
	}
	defer stop()
	delay := firstDelay
	var retry <-chan time.Time
	for {
		want := g.want()
		if running != nil && running.run != want {
			stop()
			delay, retry = firstDelay, nil
		}
		if want != nil && running == nil && retry == nil {
			log.Info("Starting controllers", "key", want.Key)
			running = g.start(ctx, want)
			g.setRunning(want.Key)
		}
		var ended chan error
		if running != nil {
			ended = running.ended
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.changed:
			delay, retry = firstDelay, nil
		case <-retry:
			retry = nil
		case err := <-ended:
			if g.clock.Since(running.started) > stable {
				delay = firstDelay
			}
			log.Error(err, "Controllers failed, starting them again", "key", running.run.Key, "after", delay)
			running.stop()
			running = nil
			g.setRunning("")
			retry, delay = g.clock.After(delay), min(2*delay, maxDelay)
		}
	}
}

// start starts a manager. Its error is received from the child, also that of its creation.
func (g *Group) start(ctx context.Context, run *Run) *child {
	ctx, cancel := context.WithCancel(ctx)
	c := &child{run: run, started: g.clock.Now(), stop: cancel, ended: make(chan error, 1)}
	go func() {
		mgr, err := run.New(ctx)
		if err == nil {
			err = mgr.Start(ctx)
		}
		c.ended <- err
	}()
	return c
}
