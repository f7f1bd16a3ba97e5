package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// commandTimeout limits one command. HAProxy responds within milliseconds.
	commandTimeout = 5 * time.Second
	// batchSize limits the size of one command; HAProxy's buffer has 16 KiB.
	batchSize = 12 << 10
	// maxResponse is far more than the maps of any seed take.
	maxResponse = 64 << 20
)

// redial is the backoff of connections to a HAProxy that is not running.
func redial() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 10, Cap: time.Second}
}

// errNotYet is the state before Set was called.
var errNotYet = errors.New("the routes are not read yet")

// Programmer keeps the maps of a HAProxy up to date, also when it restarts.
type Programmer struct {
	dir     string
	clock   clock.Clock
	changed chan struct{}

	mu    sync.Mutex
	want  *Table
	state error
}

// NewProgrammer returns the Programmer for the HAProxy that has its files in a directory.
func NewProgrammer(dir string, clk clock.Clock) *Programmer {
	return &Programmer{dir: dir, clock: clk, changed: make(chan struct{}, 1), state: errNotYet}
}

// Set sets the desired maps. It writes the files that HAProxy reads at its start; Start updates a running one.
func (p *Programmer) Set(want Table) error {
	if err := errors.Join(p.write(ExactFile, want.exact()), p.write(SuffixFile, want.suffix())); err != nil {
		return err
	}
	p.mu.Lock()
	p.want = &want
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default: // a notification is pending, which covers this change
	}
	return nil
}

// Synced returns why the running HAProxy may not have the desired maps, or nil if it has.
func (p *Programmer) Synced() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *Programmer) setState(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = err
}

func (p *Programmer) wanted() *Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want
}

// write replaces the file of a map in one step, if it differs.
func (p *Programmer) write(file string, lines []entry) error {
	var content bytes.Buffer
	for _, line := range lines {
		fmt.Fprintf(&content, "%s %s\n", line.key, line.value)
	}
	path := filepath.Join(p.dir, file)
	if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, content.Bytes()) {
		return nil
	}
	next := path + ".next"
	if err := os.WriteFile(next, content.Bytes(), 0o644); err != nil { //nolint:gosec // HAProxy may be another user, and it is no secret
		return fmt.Errorf("write map: %w", err)
	}
	return os.Rename(next, path)
}

// Start updates HAProxy until the context ends, after each Set and after each restart of HAProxy.
func (p *Programmer) Start(ctx context.Context) error {
	log := logf.FromContext(ctx)
	backoff := redial()
	for ctx.Err() == nil {
		connected, err := p.session(ctx)
		if ctx.Err() != nil {
			break
		}
		p.setState(err)
		if connected {
			backoff = redial()
			log.Info("Connecting to HAProxy again", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-p.clock.After(backoff.Step()):
		}
	}
	return nil
}

// NeedLeaderElection says that every replica programs the HAProxy beside it.
func (p *Programmer) NeedLeaderElection() bool { return false }

// session updates HAProxy until it exits. It returns whether there was a connection.
func (p *Programmer) session(ctx context.Context) (bool, error) {
	// HAProxy closes this connection when it exits, so that a restart is detected at once.
	conn, err := p.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close() //nolint:errcheck // nothing was written that could be lost
	if _, err := io.WriteString(conn, "prompt\n"); err != nil {
		return false, fmt.Errorf("talk to HAProxy: %w", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn) // ends with the connection
	}()
	for {
		if want := p.wanted(); want != nil {
			if err := p.program(ctx, *want); err != nil {
				return true, err
			}
			p.setState(nil)
		}
		select {
		case <-gone:
			return true, errors.New("HAProxy has closed the connection")
		case <-ctx.Done():
			return true, ctx.Err()
		case <-p.changed:
		}
	}
}

func (p *Programmer) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.dir, SocketFile))
	if err != nil {
		return nil, fmt.Errorf("connect to HAProxy: %w", err)
	}
	return conn, nil
}

// program updates both maps.
func (p *Programmer) program(ctx context.Context, want Table) error {
	return errors.Join(p.replace(ctx, ExactFile, want.exact()), p.replace(ctx, SuffixFile, want.suffix()))
}

// replace replaces a map in one step, unless it is up to date.
func (p *Programmer) replace(ctx context.Context, file string, want []entry) error {
	path := filepath.Join(p.dir, file)
	shown, err := p.command(ctx, "show map "+path)
	if err != nil {
		return err
	}
	have, err := parseMap(shown)
	if err != nil {
		return err
	}
	if slices.Equal(have, want) {
		return nil
	}
	response, err := p.command(ctx, "prepare map "+path)
	if err != nil {
		return err
	}
	var version uint
	if _, err := fmt.Sscanf(response, "New version created: %d", &version); err != nil {
		return fmt.Errorf("prepare map %s: HAProxy says %q", file, response)
	}
	for _, batch := range batches(want) {
		if err := p.do(ctx, fmt.Sprintf("add map @%d %s <<\n%s", version, path, batch)); err != nil {
			return err
		}
	}
	return p.do(ctx, fmt.Sprintf("commit map @%d %s", version, path))
}

// do sends a command that has an empty response if it succeeds.
func (p *Programmer) do(ctx context.Context, command string) error {
	response, err := p.command(ctx, command)
	if err == nil && response != "" {
		line, _, _ := strings.Cut(command, "\n")
		err = fmt.Errorf("%s: HAProxy says %q", line, response)
	}
	return err
}

// command sends a command over a connection of its own and returns the response.
func (p *Programmer) command(ctx context.Context, command string) (string, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // what was written has been answered
	if err := conn.SetDeadline(p.clock.Now().Add(commandTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", fmt.Errorf("send command to HAProxy: %w", err)
	}
	response, err := io.ReadAll(io.LimitReader(conn, maxResponse))
	if err != nil {
		return "", fmt.Errorf("read response of HAProxy: %w", err)
	}
	return strings.TrimSpace(string(response)), nil
}

// parseMap reads the lines of a map, each of which begins with an identifier.
func parseMap(shown string) ([]entry, error) {
	lines := []entry{}
	for line := range strings.Lines(shown) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || !strings.HasPrefix(fields[0], "0x") {
			return nil, fmt.Errorf("show map: HAProxy says %q", strings.TrimSpace(line))
		}
		lines = append(lines, entry{fields[1], fields[2]})
	}
	return lines, nil
}

// batches returns lines in pieces that fit into HAProxy's buffer, each of which ends with an empty line.
func batches(lines []entry) []string {
	var out []string
	var batch strings.Builder
	flush := func() {
		if batch.Len() > 0 {
			out = append(out, batch.String())
			batch.Reset()
		}
	}
	for _, line := range lines {
		text := line.key + " " + line.value + "\n"
		if batch.Len()+len(text) > batchSize {
			flush()
		}
		batch.WriteString(text)
	}
	flush()
	return out
}
