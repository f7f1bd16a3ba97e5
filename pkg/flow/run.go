package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/pkg/errorcode"
)

// Options are what a run of a flow can have besides its tasks.
type Options struct {
	// Progress is called at the start, and whenever a task starts or ends. Calls are not concurrent, and block the flow: it must
	// return quickly. Latest is for slow functions.
	Progress func(Progress)
	// Ended is called for each task that has ended. Calls are not concurrent, and must return quickly. LogTimings returns such a function.
	Ended func(Timing)
	// Metrics are updated for each task. Nil means none.
	Metrics *Metrics
	// Clock is for the timings, and for Task.RetryFor. The default is the real one.
	Clock clock.PassiveClock
	// StopOn says whether the error of a task makes it useless to go on: no more tasks are started, and the running ones are interrupted. Those
	// did not fail, but are among the waiting ones. Nil means that all tasks that do not depend on the failed one still run.
	StopOn func(error) bool
}

// Progress is how far a run is.
type Progress struct {
	// Total is the number of tasks, Done of those that succeeded.
	Total, Done int
	// Running and Failed are titles of tasks, in the order of the flow.
	Running, Failed []string
}

// Percent is the share of tasks that are done, from 0 to 100. It is 100 only if all are.
func (p Progress) Percent() int32 {
	if p.Total == 0 {
		return 100
	}
	return int32(p.Done * 100 / p.Total) //nolint:gosec // at most 100
}

// Result is what a run did.
type Result struct {
	// Timings are of the tasks that were started, in the order of the flow.
	Timings []Timing
}

// Error is why a flow failed: one error per failed task, in the order of the flow.
type Error struct {
	// Flow is the name of the flow.
	Flow string
	// Tasks are the tasks that failed. It is empty if the context ended before the next task could start.
	Tasks []*TaskError
	// Waiting are the IDs of tasks that were not started, or interrupted, because others failed or the context ended.
	Waiting []string
	cause   error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("flow %q: %v", e.Flow, errors.Join(e.Unwrap()...))
}

// Unwrap gives errors.Is and errors.As the errors of the tasks.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, len(e.Tasks)+1)
	for _, task := range e.Tasks {
		errs = append(errs, task)
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

// TaskError is why a task failed.
type TaskError struct {
	// ID and Title are those of the task.
	ID, Title string
	// Err is the error of its last attempt.
	Err error
}

// Error implements error.
func (e *TaskError) Error() string { return fmt.Sprintf("task %q: %v", e.ID, e.Err) }

// Unwrap gives errors.Is and errors.As the error of the task.
func (e *TaskError) Unwrap() error { return e.Err }

// Run runs the tasks, each as soon as its dependencies are done. When a task fails, the tasks that depend on it are not
// started, and all others still run, unless Options.StopOn says otherwise. When ctx ends, no more tasks are started, and Run returns as soon as the running ones have
// returned. The error is nil or an *Error.
func (f *Flow) Run(ctx context.Context, options Options) (*Result, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	r := run{
		Flow: f, options: options,
		waits: make(map[*node]int, len(f.tasks)), timings: make(map[*node]*Timing, len(f.tasks)),
		running: map[*node]bool{}, interrupted: map[*node]bool{}, ended: make(chan outcome),
	}
	stoppable, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.run(stoppable, stop)
	return r.result(ctx)
}

// errStopped interrupts tasks, see Options.StopOn.
var errStopped = errors.New("another task failed")

// run is the state of one run of a flow. Only the goroutine of Run uses it; tasks send their outcomes.
type run struct {
	*Flow
	options Options
	waits   map[*node]int // how many tasks each still waits for
	timings map[*node]*Timing
	running map[*node]bool
	// interrupted are tasks that have failed as the run was stopped.
	interrupted map[*node]bool
	done        int
	ended       chan outcome
}

type outcome struct {
	*node
	Timing
}

func (r *run) run(ctx context.Context, stop context.CancelCauseFunc) {
	for _, n := range r.tasks {
		r.waits[n] = len(n.after)
	}
	r.report()
	for _, n := range r.tasks {
		if len(n.after) == 0 {
			r.start(ctx, n)
		}
	}
	for len(r.running) > 0 {
		o := <-r.ended
		delete(r.running, o.node)
		r.timings[o.node] = &o.Timing
		r.options.Metrics.observe(r.name, o.Timing)
		if r.options.Ended != nil {
			r.options.Ended(o.Timing)
		}
		switch {
		case o.Err == nil:
			r.done++
			for _, next := range o.before {
				if r.waits[next]--; r.waits[next] == 0 {
					r.start(ctx, next)
				}
			}
		case errors.Is(context.Cause(ctx), errStopped) && (!r.stopsOn(o.Err) || causedByStop(o.Err)):
			r.interrupted[o.node] = true
		case r.stopsOn(o.Err):
			stop(errStopped)
		}
		r.report()
	}
}

func (r *run) stopsOn(err error) bool { return r.options.StopOn != nil && r.options.StopOn(err) }

// causedByStop reports whether a task failed because its context was canceled. Some clients keep only the text of that error.
func causedByStop(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), context.Canceled.Error())
}

// start starts a task, unless the context has ended.
func (r *run) start(ctx context.Context, n *node) {
	if ctx.Err() != nil {
		return
	}
	r.running[n] = true
	r.report()
	go func() {
		t := Timing{ID: n.ID, Start: r.options.Clock.Now()}
		for _, first := range n.after {
			t.After = append(t.After, first.ID)
		}
		t.Err = n.execute(ctx, r.options.Clock)
		t.End = r.options.Clock.Now()
		r.ended <- outcome{n, t}
	}()
}

// execute runs a task with its timeout and retries. An error that only the user can fix is not retried.
func (n *node) execute(ctx context.Context, clock clock.PassiveClock) (err error) {
	if n.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, n.Timeout, fmt.Errorf("timed out after %s", n.Timeout))
		defer cancel()
	}
	begin := clock.Now()
	try := func(ctx context.Context) (bool, error) {
		err = caught(func() error { return n.Run(ctx) })
		var fault *Panic
		if errors.As(err, &fault) {
			return false, err
		}
		return err == nil || errorcode.NeedsUser(errorcode.Of(err)) || n.RetryIf != nil && !n.RetryIf(err) || n.RetryFor > 0 && clock.Since(begin) >= n.RetryFor, nil
	}
	if n.Retry.Steps == 0 {
		_, _ = try(ctx)
	} else if waitErr := wait.ExponentialBackoffWithContext(ctx, n.Retry, try); waitErr != nil && err == nil {
		err = waitErr
	}
	if err != nil && n.Timeout > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// Panic is the error of a task that panicked. It is not retried within the same run.
type Panic struct {
	// Value is what the task panicked with.
	Value any
	// Stack is the stack trace.
	Stack []byte
}

// Error implements error. It does not contain the stack, as it may become part of a status.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// caught runs a function and turns its panic into an error.
func caught(run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	return run()
}

func (r *run) report() {
	if r.options.Progress == nil {
		return
	}
	p := Progress{Total: len(r.tasks), Done: r.done}
	for _, n := range r.tasks {
		switch t := r.timings[n]; {
		case r.running[n]:
			p.Running = append(p.Running, n.Title)
		case t != nil && t.Err != nil && !r.interrupted[n]:
			p.Failed = append(p.Failed, n.Title)
		}
	}
	r.options.Progress(p)
}

func (r *run) result(ctx context.Context) (*Result, error) {
	result, failed := &Result{}, &Error{Flow: r.name}
	for _, n := range r.tasks {
		t := r.timings[n]
		if t == nil {
			failed.Waiting = append(failed.Waiting, n.ID)
			continue
		}
		result.Timings = append(result.Timings, *t)
		if r.interrupted[n] {
			failed.Waiting = append(failed.Waiting, n.ID)
		} else if t.Err != nil {
			failed.Tasks = append(failed.Tasks, &TaskError{ID: n.ID, Title: n.Title, Err: t.Err})
		}
	}
	if len(failed.Waiting) > 0 && ctx.Err() != nil {
		failed.cause = context.Cause(ctx)
	}
	if len(failed.Tasks) == 0 && failed.cause == nil {
		return result, nil
	}
	return result, failed
}
