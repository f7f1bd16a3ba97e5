package haproxy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// fake responds to commands as HAProxy does, as far as they are used here.
type fake struct {
	mu       sync.Mutex
	maps     map[string][]string // the lines of maps by file; a prepared one has "@1 " before
	prepared int
	held     []net.Conn
	broken   string // its response to a commit
}

func (f *fake) serve(t *testing.T, dir string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(dir, SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.answer(conn)
		}
	}()
	return func() {
		_ = listener.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, conn := range f.held {
			_ = conn.Close()
		}
		f.maps, f.held = map[string][]string{}, nil
	}
}

func (f *fake) answer(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	lines.Scan()
	words := strings.Fields(lines.Text())
	f.mu.Lock()
	defer f.mu.Unlock()
	if words[0] == "prompt" {
		f.held = append(f.held, conn)
		return
	}
	defer conn.Close() //nolint:errcheck // the answer is written
	file := words[len(words)-1]
	switch words[0] {
	case "show":
		for i, line := range f.maps[file] {
			fmt.Fprintf(conn, "0x%x %s\n", i+1, line)
		}
	case "prepare":
		f.prepared++
		f.maps["@1 "+file] = nil
		fmt.Fprintf(conn, "New version created: 1\n")
	case "add":
		size := 0
		for file = words[3]; lines.Scan() && lines.Text() != ""; size += len(lines.Text()) + 1 {
			f.maps["@1 "+file] = append(f.maps["@1 "+file], lines.Text())
		}
		if size > 16<<10 {
			fmt.Fprintf(conn, "too much\n")
		}
	case "commit":
		if f.broken != "" {
			fmt.Fprintln(conn, f.broken)
			return
		}
		f.maps[file] = f.maps["@1 "+file]
	}
	fmt.Fprintln(conn)
}

func (f *fake) lines(dir, file string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.maps[filepath.Join(dir, file)])
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal(err)
		}
	}
}

func TestProgrammer(t *testing.T) {
	dir := t.TempDir()
	f := &fake{maps: map[string][]string{}}
	stop := f.serve(t, dir)
	p := NewProgrammer(dir, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Start(ctx) }()
	defer func() { cancel(); <-ended }()
	if p.Synced() == nil {
		t.Error("it is synced before Set was called")
	}
	table := NewTable()
	for i := range 3000 {
		table.Add(fmt.Sprintf("api.shoot-%04d.example.com", i), netip.MustParseAddrPort("10.0.0.1:443"))
	}
	for _, host := range []string{"*.b.example.com", "*.example.com", "*.a.b.example.com"} {
		table.Add(host, netip.MustParseAddrPort("[fd00::1]:8443"))
	}
	table.Add("closed.example.com", netip.AddrPort{})
	if err := p.Set(table); err != nil {
		t.Fatal(err)
	}
	eventually(t, p.Synced)
	if got := f.lines(dir, ExactFile); len(got) != 3001 || got[0] != "api.shoot-0000.example.com 10.0.0.1/443" || got[3000] != "closed.example.com -" {
		t.Errorf("the map has %d lines", len(got))
	}
	want := []string{".a.b.example.com fd00::1/8443", ".b.example.com fd00::1/8443", ".example.com fd00::1/8443"}
	if got := f.lines(dir, SuffixFile); !slices.Equal(got, want) {
		t.Errorf("suffixes are %q", got)
	}

	// It restarts with empty maps, and gets the routes again.
	stop()
	eventually(t, func() error {
		if p.Synced() == nil {
			return fmt.Errorf("it is synced though HAProxy is not running")
		}
		return nil
	})
	stop = f.serve(t, dir)
	defer func() { stop() }()
	eventually(t, func() error {
		if n := len(f.lines(dir, ExactFile)); n != 3001 {
			return fmt.Errorf("the map has %d lines", n)
		}
		return p.Synced()
	})

	// An error of HAProxy is reported, and the command retried.
	f.mu.Lock()
	f.broken = "Permission denied"
	f.mu.Unlock()
	if err := p.Set(NewTable()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := p.Synced(); err == nil || !strings.Contains(err.Error(), "Permission denied") {
			return fmt.Errorf("its state is %w", err)
		}
		return nil
	})
	f.mu.Lock()
	f.broken = ""
	f.mu.Unlock()
	eventually(t, func() error {
		if n := len(f.lines(dir, ExactFile)); n != 0 {
			return fmt.Errorf("the map has %d lines", n)
		}
		return p.Synced()
	})

	// Maps that are up to date are not written.
	f.mu.Lock()
	before := f.prepared
	f.mu.Unlock()
	if err := p.program(t.Context(), NewTable()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.prepared != before {
		t.Error("a map was replaced without a difference")
	}
}
