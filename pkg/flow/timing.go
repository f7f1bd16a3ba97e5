package flow

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-logr/logr"
)

// Timing is when a task ran.
type Timing struct {
	// ID identifies the task.
	ID string
	// Start and End are when its first attempt began, and its last one ended.
	Start, End time.Time
	// After are the IDs of its dependencies.
	After []string
	// Err is its error, or nil.
	Err error
}

// Duration is how long the task ran.
func (t Timing) Duration() time.Duration { return t.End.Sub(t.Start) }

// CriticalPath returns the tasks that determined how long a run took: the one that ended last, before it the one of its dependencies
// that ended last, and so on, first to last.
func CriticalPath(timings []Timing) []Timing {
	byID := map[string]Timing{}
	var last *Timing
	later := func(a *Timing, b Timing) bool { return a == nil || b.End.After(a.End) }
	for _, t := range timings {
		byID[t.ID] = t
		if later(last, t) {
			last = &t
		}
	}
	var path []Timing
	for last != nil {
		path = append(path, *last)
		ids := last.After
		last = nil
		for _, id := range ids {
			if t, ok := byID[id]; ok && later(last, t) {
				last = &t
			}
		}
	}
	slices.Reverse(path)
	return path
}

// endedTask is the message of the lines that LogTimings writes.
const endedTask = "Ended task"

// LogTimings returns a function for Options.Ended that logs one line per task, in a format that ReadTimings reads.
func LogTimings(log logr.Logger, flow string) func(Timing) {
	return func(t Timing) {
		pairs := []any{
			"flow", flow, "task", t.ID, "start", t.Start.UTC().Format(time.RFC3339Nano), "took", t.Duration().String(), "after", t.After,
		}
		if t.Err != nil {
			pairs = append(pairs, "error", t.Err.Error())
		}
		log.Info(endedTask, pairs...)
	}
}

// LoggedTiming is a timing from a log.
type LoggedTiming struct {
	Timing
	// Flow is the name of the flow.
	Flow string
	// Namespace and Name are those of the reconciled object, and ReconcileID identifies the run.
	Namespace, Name, ReconcileID string
}

// ReadTimings returns the timings that LogTimings has written to a log in the format json, in the order of the log. Other lines are ignored.
func ReadTimings(log io.Reader) ([]LoggedTiming, error) {
	var found []LoggedTiming
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if t, ok := readTiming(line); ok {
			found = append(found, t)
		}
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("read timings: %w", err)
		}
	}
}

func readTiming(line []byte) (LoggedTiming, bool) {
	var l struct {
		Msg, Flow, Task, Took, Error string
		Start                        time.Time
		After                        []string
		Namespace, Name, ReconcileID string
	}
	if json.Unmarshal(line, &l) != nil || l.Msg != endedTask {
		return LoggedTiming{}, false
	}
	took, err := time.ParseDuration(l.Took)
	if err != nil {
		return LoggedTiming{}, false
	}
	t := LoggedTiming{
		Timing: Timing{ID: l.Task, Start: l.Start, End: l.Start.Add(took), After: l.After},
		Flow:   l.Flow, Namespace: l.Namespace, Name: l.Name, ReconcileID: l.ReconcileID,
	}
	if l.Error != "" {
		t.Err = errors.New(l.Error)
	}
	return t, true
}
