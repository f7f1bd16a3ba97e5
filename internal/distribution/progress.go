package distribution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress receives the progress of a build. Its methods are called from several goroutines.
type Progress interface {
	// Begin reports how many products are checked, and how many of them have to be built.
	Begin(total, missing int)
	Started(product string)
	Step(product, step string)
	// Waiting reports a product that another run is building. It is started or finished after that.
	Waiting(product string)
	// Finished reports the end of a product that was started, or that another run built meanwhile.
	Finished(product string, err error)
}

// NoProgress ignores progress.
type NoProgress struct{}

func (NoProgress) Begin(int, int)         {}
func (NoProgress) Started(string)         {}
func (NoProgress) Step(string, string)    {}
func (NoProgress) Waiting(string)         {}
func (NoProgress) Finished(string, error) {}

// On a terminal, a running product is shown after liveAfter; elsewhere, a line is written every plainEvery.
const (
	liveAfter  = 2 * time.Second
	liveEvery  = 250 * time.Millisecond
	plainEvery = 20 * time.Second
)

// Lines is Progress as text: a line per finished product and, while one takes long, its current step.
type Lines struct {
	w     io.Writer
	live  bool
	width func() int
	now   func() time.Time

	mu       sync.Mutex
	running  []*task
	drawn    int // lines of the live part that are on the screen
	finished int
	missing  int
}

type task struct {
	product string
	step    string
	start   time.Time
	printed time.Time // when its last plain line was written
	waiting bool      // for another run
}

// NewLines writes to w, and redraws lines if w is a terminal. Close ends it.
func NewLines(w io.Writer) *Lines {
	l := &Lines{w: w, now: time.Now, width: func() int { return 80 }}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.live = true
		l.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return l
}

// Run redraws until stop is closed.
func (l *Lines) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			l.mu.Lock()
			l.erase()
			l.mu.Unlock()
			return
		case <-ticker.C:
			l.tick()
		}
	}
}

func (l *Lines) Begin(_, missing int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing = missing
}

func (l *Lines) Started(product string) {
	l.begin(task{product: product, step: "starting"})
}

func (l *Lines) Waiting(product string) {
	l.begin(task{product: product, step: "waiting for another run that builds it", waiting: true})
}

// begin shows a task, in place of the one of the same product that was waiting.
func (l *Lines) begin(t task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.start = l.now()
	t.printed = t.start
	l.running = slices.DeleteFunc(l.running, func(other *task) bool { return other.product == t.product })
	l.running = append(l.running, &t)
}

func (l *Lines) Step(product, step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.find(product); t != nil {
		t.step = step
	}
}

func (l *Lines) Finished(product string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(product)
	l.running = slices.DeleteFunc(l.running, func(other *task) bool { return other == t })
	l.finished++
	took := "built by another run"
	if t != nil && (!t.waiting || err != nil) {
		took = durationText(l.now().Sub(t.start))
	}
	count := fmt.Sprintf("[%d/%d]", l.finished, l.missing)
	switch {
	case errors.Is(err, errStopped) || errors.Is(err, context.Canceled):
		l.print(fmt.Sprintf("%-7s %-24s stopped after %s", count, product, took))
		return
	case err != nil:
		l.print(fmt.Sprintf("%-7s %-24s failed after %s", count, product, took))
		return
	}
	l.print(fmt.Sprintf("%-7s %-24s %s", count, product, took))
}

func (l *Lines) find(product string) *task {
	for _, t := range l.running {
		if t.product == product {
			return t
		}
	}
	return nil
}

// tick shows running products.
func (l *Lines) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.live {
		l.erase()
		l.draw(now)
		return
	}
	for _, t := range l.running {
		if now.Sub(t.printed) >= plainEvery {
			t.printed = now
			fmt.Fprintln(l.w, l.line(t, now))
		}
	}
}

func (l *Lines) line(t *task, now time.Time) string {
	return fmt.Sprintf("        %-24s %s, %s", t.product, durationText(now.Sub(t.start)), t.step)
}

// print writes a line that stays, above the live part.
func (l *Lines) print(line string) {
	l.erase()
	fmt.Fprintln(l.w, line)
	if l.live {
		l.draw(l.now())
	}
}

func (l *Lines) draw(now time.Time) {
	for _, t := range l.running {
		if now.Sub(t.start) < liveAfter {
			continue
		}
		line := []rune(l.line(t, now))
		if width := l.width(); width > 1 && len(line) >= width {
			line = line[:width-1]
		}
		fmt.Fprintln(l.w, string(line))
		l.drawn++
	}
}

func (l *Lines) erase() {
	for ; l.drawn > 0; l.drawn-- {
		fmt.Fprint(l.w, "\x1b[1A\x1b[2K")
	}
}

// durationText formats a duration: 0.3s, 12s or 4m20s.
func durationText(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
}
