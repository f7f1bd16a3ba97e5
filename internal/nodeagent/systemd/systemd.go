// Package systemd talks to systemd over D-Bus.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// jobTimeout is how long a unit may take to start or stop. systemd itself gives up after 90 s by default.
const jobTimeout = 2 * time.Minute

// ErrMasked is returned for a unit that the operating system masked.
var ErrMasked = errors.New("unit is masked")

// Load states of units.
const (
	LoadLoaded   = "loaded"
	LoadMasked   = "masked"
	LoadNotFound = "not-found"
)

// Active states of units.
const (
	ActiveActive       = "active"
	ActiveInactive     = "inactive"
	ActiveFailed       = "failed"
	ActiveActivating   = "activating"
	ActiveDeactivating = "deactivating"
)

// State is the state of a unit.
type State struct {
	// Load is loaded, not-found, masked, ...
	Load string
	// Active is active, reloading, inactive, failed, activating or deactivating.
	Active string
	// Sub is the state in terms of the kind of unit, such as running or exited.
	Sub string
	// Since is when Active became what it is.
	Since time.Time
}

// Conn is a connection to systemd that is opened when it is needed, and opened again after it broke.
type Conn struct {
	mutex sync.Mutex
	conn  *dbus.Conn
}

func (c *Conn) get(ctx context.Context) (*dbus.Conn, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.conn != nil && c.conn.Connected() {
		return c.conn, nil
	}
	if c.conn != nil {
		c.conn.Close()
	}
	var err error
	// The connection is closed when its context ends, so it does not get that of a request.
	if c.conn, err = dbus.NewSystemConnectionContext(context.WithoutCancel(ctx)); err != nil {
		c.conn = nil
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	return c.conn, nil
}

// Reload makes systemd read unit files again.
func (c *Conn) Reload(ctx context.Context) error {
	conn, err := c.get(ctx)
	if err != nil {
		return err
	}
	return conn.ReloadContext(ctx)
}

// Enable makes a unit start at boot.
func (c *Conn) Enable(ctx context.Context, unit string) error {
	conn, err := c.get(ctx)
	if err != nil {
		return err
	}
	_, _, err = conn.EnableUnitFilesContext(ctx, []string{unit}, false, true)
	return err
}

// Disable makes a unit not start at boot. It succeeds if the unit does not exist.
func (c *Conn) Disable(ctx context.Context, unit string) error {
	conn, err := c.get(ctx)
	if err != nil {
		return err
	}
	_, err = conn.DisableUnitFilesContext(ctx, []string{unit}, false)
	var answer godbus.Error
	if errors.As(err, &answer) && (answer.Name == "org.freedesktop.systemd1.NoSuchUnit" || answer.Name == "org.freedesktop.DBus.Error.FileNotFound") {
		return nil
	}
	return err
}

// Restart starts a unit, or restarts it if it runs, and waits for the result. It returns ErrMasked for a masked unit.
func (c *Conn) Restart(ctx context.Context, unit string) error {
	return c.job(ctx, unit, true, (*dbus.Conn).RestartUnitContext)
}

// Stop stops a unit and waits for the result. It succeeds if the unit does not exist.
func (c *Conn) Stop(ctx context.Context, unit string) error {
	if state, err := c.State(ctx, unit); err != nil || state.Load == LoadNotFound && state.Active == ActiveInactive {
		return err
	}
	return c.job(ctx, unit, true, (*dbus.Conn).StopUnitContext)
}

// RestartWithoutWaiting is for the unit that this process belongs to, which may end before this returns.
func (c *Conn) RestartWithoutWaiting(ctx context.Context, unit string) error {
	return c.job(ctx, unit, false, (*dbus.Conn).RestartUnitContext)
}

func (c *Conn) job(
	ctx context.Context, unit string, wait bool,
	start func(*dbus.Conn, context.Context, string, string, chan<- string) (int, error),
) error {
	state, err := c.State(ctx, unit)
	if err != nil {
		return err
	}
	if state.Load == LoadMasked {
		return fmt.Errorf("%w: %s", ErrMasked, unit)
	}
	conn, err := c.get(ctx)
	if err != nil {
		return err
	}
	var done chan string
	if wait {
		done = make(chan string, 1)
	}
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	if _, err := start(conn, ctx, unit, "replace", done); err != nil {
		return err
	}
	if !wait {
		return nil
	}
	select {
	case result := <-done:
		if result != "done" && result != "skipped" {
			return fmt.Errorf("job of unit %s is %s; see: journalctl -u %s", unit, result, unit)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the job of unit %s: %w", unit, ctx.Err())
	}
}

// State returns the state of a unit, LoadNotFound if there is none of this name.
func (c *Conn) State(ctx context.Context, unit string) (State, error) {
	conn, err := c.get(ctx)
	if err != nil {
		return State{}, err
	}
	properties, err := conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return State{}, fmt.Errorf("read unit %s: %w", unit, err)
	}
	text := func(name string) string { value, _ := properties[name].(string); return value }
	state := State{Load: text("LoadState"), Active: text("ActiveState"), Sub: text("SubState")}
	if at, ok := properties["StateChangeTimestamp"].(uint64); ok && at > 0 {
		state.Since = time.UnixMicro(int64(at))
	}
	return state, nil
}
