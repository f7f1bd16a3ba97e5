// Package progress prints the steps of a command: one line each, with its duration.
package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// showAfter is how long a step may take before it is shown as running.
	showAfter = 2 * time.Second
	// redraw is how often a live line changes, and plainEvery how often a line is added where nothing can be redrawn.
	redraw     = 200 * time.Millisecond
	plainEvery = 20 * time.Second
)

// Printer writes steps to a terminal or a log, or as events for programs.
type Printer struct {
	out    io.Writer
	live   bool
	events *json.Encoder // nil for text output
	now    func() time.Time
}

// New returns a printer that redraws its last line if out is a terminal.
func New(out io.Writer) *Printer {
	file, ok := out.(*os.File)
	return &Printer{out: out, live: ok && term.IsTerminal(int(file.Fd())), now: time.Now} //nolint:gosec // descriptors are small
}

// NewJSON returns a printer that writes an Event a line.
func NewJSON(out io.Writer) *Printer {
	return &Printer{out: out, events: json.NewEncoder(out), now: time.Now}
}

// States of a step.
const (
	StateStarted   = "Started"
	StateRunning   = "Running"
	StateSucceeded = "Succeeded"
	StateFailed    = "Failed"
)

// Event is the progress of a step, as programs read it.
type Event struct {
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Step is the step's title, such as "Starting containerd", empty for a failure before the first step or after the last.
	Step string `json:"step"`
	// State is one of the constants. A step is reported as Running once for each new Detail.
	State string `json:"state"`
	// Detail is what a running step does or waits for.
	Detail string `json:"detail,omitempty"`
	// Seconds are those since the step started.
	Seconds float64 `json:"seconds"`
	// Error is why it failed, and Log the file to read, empty if there is none.
	Error string `json:"error,omitempty"`
	Log   string `json:"log,omitempty"`
}

// StepError is a step that failed.
type StepError struct {
	// Step is the step's title, such as "Starting containerd".
	Step string
	// Err is why it failed.
	Err error
	// Log is the file to read, empty if there is none.
	Log string
}

func (e *StepError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("%s: %v", e.Step, e.Err)
	}
	return fmt.Sprintf("%s: %v\nSee the log: %s", e.Step, e.Err, e.Log)
}

func (e *StepError) Unwrap() error { return e.Err }

// Step runs do and prints a line when it has ended. While it runs, the details that do passes to its argument are shown. A failure
// is returned as a *StepError that names the log.
func (p *Printer) Step(ctx context.Context, title, log string, do func(ctx context.Context, detail func(string)) error) error {
	if p.events != nil {
		return p.stepEvents(ctx, title, log, do)
	}
	var (
		mu     sync.Mutex
		detail string
		start  = p.now()
		done   = make(chan struct{})
		shown  sync.WaitGroup
	)
	shown.Go(func() {
		interval := plainEvery
		if p.live {
			interval = redraw
		}
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				mu.Lock()
				p.running(title, detail, p.now().Sub(start))
				mu.Unlock()
			}
		}
	})
	err := do(ctx, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		detail = text
	})
	close(done)
	shown.Wait()
	if err != nil {
		p.line("✗", title, "", p.now().Sub(start))
		return &StepError{Step: title, Err: err, Log: log}
	}
	mu.Lock()
	defer mu.Unlock()
	p.line("✓", title, "", p.now().Sub(start))
	return nil
}

// stepEvents is Step for programs: each new detail is written once, without delay.
func (p *Printer) stepEvents(ctx context.Context, title, log string, do func(ctx context.Context, detail func(string)) error) error {
	var (
		mu    sync.Mutex
		last  string
		start = p.now()
	)
	write := func(e Event) {
		e.Time, e.Step = p.now(), title
		e.Seconds = e.Time.Sub(start).Seconds()
		_ = p.events.Encode(e) // The work goes on, also if the reader is gone.
	}
	write(Event{State: StateStarted})
	err := do(ctx, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != last {
			last = text
			write(Event{State: StateRunning, Detail: text})
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		write(Event{State: StateFailed, Error: err.Error(), Log: log})
		return &StepError{Step: title, Err: err, Log: log}
	}
	write(Event{State: StateSucceeded})
	return nil
}

// Failed reports a failure outside of all steps to programs; users get it as the error of the command.
func (p *Printer) Failed(err error) {
	if p.events != nil {
		_ = p.events.Encode(Event{Time: p.now(), State: StateFailed, Error: err.Error()}) // The reader may be gone.
	}
}

func (p *Printer) running(title, detail string, after time.Duration) {
	if after < showAfter {
		return
	}
	if !p.live {
		p.line("…", title, detail, after)
		return
	}
	fmt.Fprintf(p.out, "\r\033[K… %s%s", text(title, detail), duration(after))
}

func (p *Printer) line(mark, title, detail string, after time.Duration) {
	clear := ""
	if p.live {
		clear = "\r\033[K"
	}
	fmt.Fprintf(p.out, "%s%s %s%s\n", clear, mark, text(title, detail), duration(after))
}

func text(title, detail string) string {
	if detail == "" {
		return title
	}
	return title + ": " + detail
}

func duration(d time.Duration) string { return fmt.Sprintf(" (%.1fs)", d.Seconds()) }
