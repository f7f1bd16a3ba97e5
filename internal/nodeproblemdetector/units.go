package nodeproblemdetector

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	systemddbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

const (
	// connectTimeout is how long the bus may take to answer.
	connectTimeout = 10 * time.Second
	// signalBuffer is how many signals may wait. A unit that starts sends a few.
	signalBuffer = 64

	systemdName, systemdPath = "org.freedesktop.systemd1", dbus.ObjectPath("/org/freedesktop/systemd1")
	managerInterface         = systemdName + ".Manager"
	serviceInterface         = systemdName + ".Service"
	propertiesInterface      = "org.freedesktop.DBus.Properties"
	propertiesChanged        = "PropertiesChanged"
	// startProperty is when the main process of a unit has started, in microseconds. Unlike the state, it changes with each start, also of a process
	// that ends before the unit is active.
	startProperty = "ExecMainStartTimestampMonotonic"
)

// watchedUnits are those whose starts are counted, by the path of their object.
var watchedUnits = map[dbus.ObjectPath]string{unitPath(kubeletUnit): kubeletUnit, unitPath(containerdUnit): containerdUnit}

func unitPath(unit string) dbus.ObjectPath {
	return systemdPath + "/unit/" + dbus.ObjectPath(systemddbus.PathBusEscape(unit))
}

// units watches the starts of units of systemd.
type units struct {
	// connect opens a connection, which is closed with the context.
	connect func(context.Context) (*dbus.Conn, error)
	// starts are when the units were last seen to start, also before the connection was opened again.
	starts map[string]uint64
}

// systemBus returns a function that connects to the bus with a socket.
func systemBus(socket string) func(context.Context) (*dbus.Conn, error) {
	return func(ctx context.Context) (*dbus.Conn, error) {
		conn, err := dbus.Dial("unix:path="+socket, dbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
		if err == nil {
			err = conn.Hello()
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// open connects in time. The connection ends with the context, or when it is closed.
func (u *units) open(ctx context.Context) (*dbus.Conn, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(connectTimeout, cancel)
	conn, err := u.connect(ctx)
	if err == nil && !late.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		late.Stop()
		cancel()
		return nil, nil, fmt.Errorf("connect to systemd: %w", err)
	}
	return conn, cancel, nil
}

// machineStart returns when systemd has started, as time since the start of the kernel.
func (u *units) machineStart(ctx context.Context) (time.Duration, error) {
	conn, closeConn, err := u.open(ctx)
	if err != nil {
		return 0, err
	}
	defer closeConn()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	micros, err := property(ctx, conn, systemdPath, managerInterface, "UserspaceTimestampMonotonic")
	return time.Duration(micros) * time.Microsecond, err //nolint:gosec // it is smaller than 200000 years
}

// read sends starts of units until the context ends or the connection is lost. It returns an error if there was no connection.
func (u *units) read(ctx context.Context, send func(observation)) error {
	conn, closeConn, err := u.open(ctx)
	if err != nil {
		return err
	}
	defer closeConn()
	signals := make(chan *dbus.Signal, signalBuffer)
	conn.Signal(signals)
	if err := u.subscribe(ctx, conn, send); err != nil {
		return err
	}
	send(available(systemd))
	for {
		select {
		case <-ctx.Done():
			return nil
		case signal, ok := <-signals:
			if !ok {
				return nil // it connects again
			}
			if unit, start := startOf(signal); unit != "" {
				u.observe(unit, start, send)
			}
		}
	}
}

// subscribe requests signals, and then reads when the units have started last.
func (u *units) subscribe(ctx context.Context, conn *dbus.Conn, send func(observation)) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.Object(systemdName, systemdPath).CallWithContext(ctx, managerInterface+".Subscribe", 0).Err; err != nil {
		return fmt.Errorf("subscribe to systemd: %w", err)
	}
	for path, unit := range watchedUnits {
		err := conn.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(propertiesInterface),
			dbus.WithMatchMember(propertiesChanged), dbus.WithMatchArg(0, serviceInterface))
		if err != nil {
			return fmt.Errorf("watch unit %s: %w", unit, err)
		}
		start, err := property(ctx, conn, path, serviceInterface, startProperty)
		if err != nil {
			return fmt.Errorf("read unit %s: %w", unit, err)
		}
		u.observe(unit, start, send)
	}
	return nil
}

// observe sends a start that is a new one. The first one that is seen was before this process.
func (u *units) observe(unit string, start uint64, send func(observation)) {
	before, known := u.starts[unit]
	if start <= before { // it is zero for a unit that does not run
		return
	}
	u.starts[unit] = start
	if known {
		send(started(unit))
	}
}

func property(ctx context.Context, conn *dbus.Conn, path dbus.ObjectPath, of, name string) (uint64, error) {
	var value dbus.Variant
	if err := conn.Object(systemdName, path).CallWithContext(ctx, propertiesInterface+".Get", 0, of, name).Store(&value); err != nil {
		return 0, err
	}
	number, ok := value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("property %s is %s", name, value)
	}
	return number, nil
}

// startOf returns the unit that a signal is about, and when it has started. The unit is empty if the signal does not have that.
func startOf(signal *dbus.Signal) (unit string, start uint64) {
	if signal.Name != propertiesInterface+"."+propertiesChanged || len(signal.Body) < 2 || signal.Body[0] != serviceInterface {
		return "", 0
	}
	changed, _ := signal.Body[1].(map[string]dbus.Variant)
	start, ok := changed[startProperty].Value().(uint64)
	if !ok {
		return "", 0
	}
	return watchedUnits[signal.Path], start
}
