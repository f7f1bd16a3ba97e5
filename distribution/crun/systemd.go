package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

// systemdUnit is a service of the node's systemd, whose socket has to be at /run/systemd/private. systemd serves root there without privileges.
type systemdUnit string

// Started is when the process of the service has started.
func (u systemdUnit) Started(ctx context.Context) (time.Time, error) {
	conn, err := dbus.NewSystemdConnectionContext(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	property, err := conn.GetUnitTypePropertyContext(ctx, string(u), "Service", "ExecMainStartTimestamp")
	if err != nil {
		return time.Time{}, err
	}
	microseconds, ok := property.Value.Value().(uint64)
	if !ok {
		return time.Time{}, fmt.Errorf("ExecMainStartTimestamp of %s is %s, and not a number", u, property.Value)
	}
	return time.UnixMicro(int64(microseconds)), nil
}

// Restart restarts the service, and waits until it is ready.
func (u systemdUnit) Restart(ctx context.Context) error {
	conn, err := dbus.NewSystemdConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("connect to systemd: %w", err)
	}
	defer conn.Close()
	done := make(chan string, 1)
	if _, err := conn.RestartUnitContext(ctx, string(u), "replace", done); err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("the job of systemd is %s", result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
