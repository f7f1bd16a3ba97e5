// Package fake is a systemd for tests. It keeps state: which units run, how often they were started, which are enabled.
package fake

import (
	"context"
	"fmt"
	"sync"

	"gardener.cloud/gardener/internal/nodeagent/systemd"
)

// Unit is the state of a unit.
type Unit struct {
	// Running, Enabled and Masked are its state.
	Running, Enabled, Masked bool
	// Starts counts how often it was started.
	Starts int
	// Fails is the error with which it does not start.
	Fails error
	// Missing is set if the machine has no such unit. It does not start, either.
	Missing bool
}

// Systemd has units. The zero value has none. It may be used by several goroutines.
type Systemd struct {
	mutex   sync.Mutex
	units   map[string]*Unit
	reloads int
}

func (s *Systemd) change(name string, change func(*Unit) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.units == nil {
		s.units = map[string]*Unit{}
	}
	if s.units[name] == nil {
		s.units[name] = &Unit{}
	}
	return change(s.units[name])
}

// Set changes a unit.
func (s *Systemd) Set(name string, change func(*Unit)) {
	_ = s.change(name, func(u *Unit) error { change(u); return nil })
}

// Unit returns a copy of a unit.
func (s *Systemd) Unit(name string) (unit Unit) {
	_ = s.change(name, func(u *Unit) error { unit = *u; return nil })
	return unit
}

// Starts returns how often units were started, by name, without those that never were.
func (s *Systemd) Starts() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	starts := map[string]int{}
	for name, unit := range s.units {
		if unit.Starts > 0 {
			starts[name] = unit.Starts
		}
	}
	return starts
}

// Reloads returns how often unit files were read.
func (s *Systemd) Reloads() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.reloads
}

// Reload counts.
func (s *Systemd) Reload(context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reloads++
	return nil
}

// Enable enables a unit.
func (s *Systemd) Enable(_ context.Context, name string) error {
	return s.change(name, func(u *Unit) error { u.Enabled = true; return nil })
}

// Disable disables a unit.
func (s *Systemd) Disable(_ context.Context, name string) error {
	return s.change(name, func(u *Unit) error { u.Enabled = false; return nil })
}

// Restart starts a unit, whether it runs or not.
func (s *Systemd) Restart(_ context.Context, name string) error {
	return s.change(name, func(u *Unit) error {
		if u.Masked {
			return fmt.Errorf("%w: %s", systemd.ErrMasked, name)
		}
		if u.Missing {
			return fmt.Errorf("unit %s not found", name)
		}
		if u.Running = u.Fails == nil; u.Running {
			u.Starts++
		}
		return u.Fails
	})
}

// RestartWithoutWaiting is Restart.
func (s *Systemd) RestartWithoutWaiting(ctx context.Context, name string) error {
	return s.Restart(ctx, name)
}

// Stop stops a unit.
func (s *Systemd) Stop(_ context.Context, name string) error {
	return s.change(name, func(u *Unit) error { u.Running = false; return nil })
}

// State returns the state of a unit.
func (s *Systemd) State(_ context.Context, name string) (systemd.State, error) {
	unit := s.Unit(name)
	state := systemd.State{Load: systemd.LoadLoaded, Active: systemd.ActiveInactive, Sub: "dead"}
	switch {
	case unit.Missing:
		state.Load = systemd.LoadNotFound
	case unit.Masked:
		state.Load = systemd.LoadMasked
	case unit.Running:
		state.Active, state.Sub = systemd.ActiveActive, "running"
	case unit.Fails != nil:
		state.Active, state.Sub = systemd.ActiveFailed, "failed"
	}
	return state, nil
}
