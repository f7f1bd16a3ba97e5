package nodeproblemdetector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestParseRecord(t *testing.T) {
	type parsed struct {
		message string
		at      time.Duration
		ok      bool
	}
	for record, want := range map[string]parsed{
		"6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net\n": {"NET: Registered protocol family 10", 5140900 * time.Microsecond, true},
		"4,1,7,-,caller=T1;a;b,c\n": {"a;b,c", 7 * time.Microsecond, true},
		"12,3,x,-;message":          {message: "message"},
		"6,339;message":             {},
		"6,339,5140900,-":           {},
		"":                          {},
	} {
		message, at, ok := parseRecord(record)
		if diff := cmp.Diff(want, parsed{message, at, ok}, cmp.AllowUnexported(parsed{})); diff != "" {
			t.Errorf("parseRecord(%q) (-want +got):\n%s", record, diff)
		}
	}
}

// socket is a device for tests: it keeps the limits of records, and has none left until one is written.
func socket(t *testing.T) (reader *os.File, write func(microseconds int, message string)) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := os.NewFile(uintptr(fds[0]), "kmsg"), os.NewFile(uintptr(fds[1]), "kmsg")
	t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
	return reader, func(microseconds int, message string) {
		t.Helper()
		if _, err := fmt.Fprintf(writer, "6,1,%d,-;%s\n KEY=value\n", microseconds, message); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKernelLogTellsPastFromPresent(t *testing.T) {
	reader, write := socket(t)
	write(4_999_999, remounted) // of a machine that existed before
	write(5_000_000, waits)
	write(5_000_001, "nothing of interest")

	d, events := newDetector(newMetrics()), make(chan []event, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- kernelLog{since: 5 * time.Second}.follow(reader, func(o observation) { events <- o(d, time.Now()) })
	}()
	next := func() []event {
		t.Helper()
		select {
		case list := <-events:
			return list
		case <-time.After(time.Minute):
			t.Fatal("nothing is observed")
			return nil
		}
	}
	if got := append(next(), next()...); len(got) > 0 { // the second record, and that there are no more
		t.Errorf("events of the past: %v", got)
	}
	write(6_000_000, remounted)
	if got, want := next(), []event{{"Warning", "FilesystemIsReadOnly", remounted}}; len(got) != 1 || got[0] != want[0] {
		t.Errorf("events are %v, want %v", got, want)
	}
	_ = reader.Close()
	if err := <-ended; err == nil {
		t.Error("it reads a closed device")
	}
	if d.sources[kernel] != readable || d.problems[readonlyFilesystem].message != remounted || len(d.times[frequentUnregisterDevice]) > 0 {
		t.Errorf("the state is %+v", d)
	}
}

func TestKernelLogCannotBeRead(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/does/not/exist": "no such file or directory", "/dev/null": "unexpected EOF", empty: "unexpected EOF", t.TempDir(): "is a directory",
	} {
		err := kernelLog{path: path}.read(t.Context(), func(observation) { t.Errorf("something is read in %s", path) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read(%s) = %v, want %s", path, err, want)
		}
	}
}
