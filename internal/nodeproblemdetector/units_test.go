package nodeproblemdetector

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// bus is systemd and its bus.
type bus struct {
	t      *testing.T
	socket string
	// starts are those of units, by the path of their object.
	starts map[dbus.ObjectPath]uint64
	// signals are sent when all units are watched, and then the connection is closed. Without any, it stays open.
	signals []*dbus.Message
}

// newBus serves a bus at a socket.
func newBus(t *testing.T, starts map[dbus.ObjectPath]uint64, signals ...*dbus.Message) *bus {
	t.Helper()
	b := &bus{t: t, socket: filepath.Join(t.TempDir(), "bus"), starts: starts, signals: signals}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *bus) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // a test
	in := bufio.NewReader(conn)
	if !authenticate(in, conn) {
		return
	}
	for watched := 0; watched < len(watchedUnits) || len(b.signals) == 0; {
		message, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		if b.send(conn, b.reply(message)) != nil {
			return
		}
		if memberOf(message) == "Get" {
			watched++ // what is read when signals are requested
		}
	}
	for _, signal := range b.signals {
		if b.send(conn, signal) != nil {
			return
		}
	}
}

func memberOf(message *dbus.Message) string {
	member, _ := message.Headers[dbus.FieldMember].Value().(string)
	return member
}

// authenticate is the part of the protocol before messages.
func authenticate(in *bufio.Reader, conn net.Conn) bool {
	if _, err := in.ReadByte(); err != nil {
		return false
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		answer := "ERROR"
		switch line = strings.TrimSpace(line); {
		case line == "BEGIN":
			return true
		case line == "AUTH":
			answer = "REJECTED EXTERNAL"
		case strings.HasPrefix(line, "AUTH EXTERNAL"), strings.HasPrefix(line, "DATA"):
			answer = "OK 0123456789abcdef0123456789abcdef"
		}
		if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
			return false
		}
	}
}

func (b *bus) send(conn net.Conn, message *dbus.Message) error {
	if len(message.Body) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(message.Body...))
	}
	return message.EncodeTo(conn, binary.LittleEndian)
}

func (b *bus) reply(to *dbus.Message) *dbus.Message {
	message := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(to.Serial())}}
	path, _ := to.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	switch memberOf(to) {
	case "Hello":
		message.Body = []any{":1.1"}
	case "AddMatch":
		if rule, _ := to.Body[0].(string); !strings.Contains(rule, "arg0='org.freedesktop.systemd1.Service'") {
			b.t.Errorf("it watches %s", rule)
		}
	case "Get":
		value := b.starts[path]
		if path == systemdPath {
			value = 12_000_000
		}
		message.Body = []any{dbus.MakeVariant(value)}
	}
	return message
}

// change is the signal of a change. systemd sends it also with values that did not change.
func change(unit, of string, properties map[string]dbus.Variant) *dbus.Message {
	return &dbus.Message{
		Type: dbus.TypeSignal, Body: []any{of, properties, []string{}},
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath: dbus.MakeVariant(unitPath(unit)), dbus.FieldInterface: dbus.MakeVariant(propertiesInterface),
			dbus.FieldMember: dbus.MakeVariant(propertiesChanged), dbus.FieldSender: dbus.MakeVariant(":1.0"),
		},
	}
}

func startAt(unit string, at uint64) *dbus.Message {
	return change(unit, serviceInterface, map[string]dbus.Variant{startProperty: dbus.MakeVariant(at), "MainPID": dbus.MakeVariant(uint32(7))})
}

// read reads until the connection is closed, and returns how often units have started, and which sources can be read.
func read(t *testing.T, u *units) (map[string]int, map[source]availability) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, at := newDetector(newMetrics()), time.Now()
	if err := u.read(ctx, func(o observation) { o(d, at) }); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("it does not see that the connection was closed")
	}
	counts := map[string]int{}
	for _, k := range kinds {
		if n := len(d.times[k.condition]); n > 0 {
			counts[k.frequent.of] = n
		}
	}
	return counts, d.sources
}

func TestUnits(t *testing.T) {
	b := newBus(t, map[dbus.ObjectPath]uint64{unitPath(kubeletUnit): 5}, // containerd does not run
		startAt(kubeletUnit, 5),
		startAt(kubeletUnit, 6),
		startAt(kubeletUnit, 6),
		startAt(kubeletUnit, 0), // it has ended
		startAt(kubeletUnit, 7),
		startAt(containerdUnit, 8), // its first start
		startAt(containerdUnit, 9),
		startAt("other.service", 10),
		change(kubeletUnit, "org.freedesktop.systemd1.Unit", map[string]dbus.Variant{startProperty: dbus.MakeVariant(uint64(11))}),
		change(kubeletUnit, serviceInterface, map[string]dbus.Variant{"MainPID": dbus.MakeVariant(uint32(8))}),
	)
	u := &units{connect: systemBus(b.socket), starts: map[string]uint64{}}
	counts, sources := read(t, u)
	if diff := cmp.Diff(map[string]int{kubeletUnit: 2, containerdUnit: 1}, counts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if sources[systemd] != readable {
		t.Errorf("the sources are %v", sources)
	}
	// The kubelet has started while there was no connection.
	b = newBus(t, map[dbus.ObjectPath]uint64{unitPath(kubeletUnit): 20, unitPath(containerdUnit): 9}, startAt(containerdUnit, 9))
	u.connect = systemBus(b.socket)
	counts, _ = read(t, u)
	if diff := cmp.Diff(map[string]int{kubeletUnit: 1}, counts); diff != "" {
		t.Errorf("starts with a new connection (-want +got):\n%s", diff)
	}
}

func TestMachineStart(t *testing.T) {
	b := newBus(t, nil)
	got, err := (&units{connect: systemBus(b.socket)}).machineStart(t.Context())
	if err != nil || got != 12*time.Second {
		t.Errorf("machineStart() = %v, %v, want 12s", got, err)
	}
	if _, err := (&units{connect: systemBus(b.socket + "x")}).machineStart(t.Context()); err == nil {
		t.Error("it connects to nothing")
	}
}

func TestUnitsWithoutBus(t *testing.T) {
	u := &units{connect: systemBus("/does/not/exist")}
	if err := u.read(t.Context(), func(observation) { t.Error("it reads something") }); err == nil {
		t.Error("there is no error")
	}
}
