package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/errorcode"
)

func nothing(context.Context) error { return nil }

func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

func TestNew(t *testing.T) {
	for name, tc := range map[string]struct {
		tasks []Task
		want  string // the flow, or what the error says
		fails bool
	}{
		"no tasks": {},
		"dependencies first, else the given order": {
			tasks: []Task{
				{ID: "c", Run: nothing, After: []string{"a"}, AfterIfPresent: []string{"b", "elsewhere", "a"}},
				{ID: "a", Run: nothing},
				{ID: "b", Run: nothing},
			},
			want: "a\nb\nc <- a, b\n",
		},
		"all errors together": {
			tasks: []Task{{Title: "Nameless", Run: nothing}, {ID: "a"}, {ID: "a", Run: nothing}, {ID: "b", Run: nothing, After: []string{"x"}}},
			want:  `task "Nameless" has no ID; task "a" has no Run; task "a" exists twice; task "b" comes after "x", which does not exist`,
			fails: true,
		},
		"a cycle": {
			tasks: []Task{
				{ID: "a", Run: nothing}, {ID: "b", Run: nothing, After: []string{"a", "c"}}, {ID: "c", Run: nothing, AfterIfPresent: []string{"b"}},
			},
			want:  "these tasks depend on each other: b, c",
			fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New("test", tc.tasks...)
			if tc.fails {
				if got := strings.ReplaceAll(fmt.Sprint(err), "\n", "; "); got != `flow "test": `+tc.want {
					t.Errorf("New() = %s", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.String()); diff != "" {
				t.Errorf("String() (-want +got):\n%s", diff)
			}
		})
	}
}

func mustNew(t *testing.T, tasks ...Task) *Flow {
	t.Helper()
	f, err := New("test", tasks...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRunIsConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := mustNew(t,
			Task{ID: "secrets", Run: takes(time.Second)},
			Task{ID: "etcd", Run: takes(5 * time.Second), After: []string{"secrets"}},
			Task{ID: "dns", Run: takes(2 * time.Second)},
			Task{ID: "api", Run: takes(3 * time.Second), After: []string{"etcd", "dns"}},
		)
		start := time.Now()
		result, err := f.Run(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		type span struct {
			ID         string
			Start, End time.Duration
		}
		spans := func(timings []Timing) (out []span) {
			for _, t := range timings {
				out = append(out, span{t.ID, t.Start.Sub(start), t.End.Sub(start)})
			}
			return out
		}
		want := []span{
			{"secrets", 0, time.Second},
			{"etcd", time.Second, 6 * time.Second},
			{"dns", 0, 2 * time.Second},
			{"api", 6 * time.Second, 9 * time.Second},
		}
		if diff := cmp.Diff(want, spans(result.Timings)); diff != "" {
			t.Errorf("timings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]span{want[0], want[1], want[3]}, spans(CriticalPath(result.Timings))); diff != "" {
			t.Errorf("critical path (-want +got):\n%s", diff)
		}
	})
}

func TestRunReportsFailures(t *testing.T) {
	broken := errors.New("no quota left")
	f := mustNew(t,
		Task{ID: "infrastructure", Title: "Creating networks", Run: func(context.Context) error {
			return errorcode.With(broken, corev1beta1.ErrorInfraQuotaExceeded)
		}},
		Task{ID: "workers", Run: nothing, After: []string{"infrastructure"}},
		Task{ID: "dns", Run: func(context.Context) error { panic("oops") }, Retry: wait.Backoff{Steps: 3}},
		Task{ID: "etcd", Run: nothing},
	)
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics("test", registry)
	if err != nil {
		t.Fatal(err)
	}
	result, err := f.Run(t.Context(), Options{Metrics: metrics})
	var failed *Error
	if !errors.As(err, &failed) || !errors.Is(err, broken) {
		t.Fatalf("Run() = %v", err)
	}
	if diff := cmp.Diff([]string{"workers"}, failed.Waiting); diff != "" {
		t.Errorf("Waiting (-want +got):\n%s", diff)
	}
	if len(result.Timings) != 3 {
		t.Errorf("%d tasks ran, want 3", len(result.Timings))
	}
	now := metav1.Now()
	infrastructure, dns := "infrastructure", "dns"
	want := []corev1beta1.LastError{
		{
			Description: `task "infrastructure": no quota left`, TaskID: &infrastructure,
			Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}, LastUpdateTime: &now,
		},
		{Description: `task "dns": panic: oops`, TaskID: &dns, LastUpdateTime: &now},
	}
	if diff := cmp.Diff(want, LastErrors(fmt.Errorf("wrapped: %w", err), now)); diff != "" {
		t.Errorf("LastErrors() (-want +got):\n%s", diff)
	}
	if n := testutil.CollectAndCount(registry); n != 3 {
		t.Errorf("%d series, want one per task that ran", n)
	}
}

func TestLastErrorsOfOtherErrors(t *testing.T) {
	now := metav1.Now()
	if got := LastErrors(nil, now); got != nil {
		t.Errorf("LastErrors(nil) = %v", got)
	}
	want := []corev1beta1.LastError{{Description: "x", LastUpdateTime: &now}}
	if diff := cmp.Diff(want, LastErrors(errors.New("x"), now)); diff != "" {
		t.Errorf("LastErrors() (-want +got):\n%s", diff)
	}
}

// A webhook that is away for a moment is waited for. One that does not respond in time is not called again and again, while the worker could reconcile other
// objects.
func TestWritesAreRetriedForSomeSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		tries int
		// atMost is how long all tries take. Delays between them are up to 10 percent longer.
		atMost time.Duration
	}{
		"connection refused":       {0, 5, 8250 * time.Millisecond},
		"a webhook that times out": {10 * time.Second, 1, 10 * time.Second},
		"one with a short timeout": {4 * time.Second, 3, 13650 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, start := 0, time.Now()
				f := mustNew(t, Do("write", "Writing", func(ctx context.Context) error {
					tries++
					return errors.Join(takes(tc.takes)(ctx), errors.New("failed calling webhook"))
				}))
				if _, err := f.Run(t.Context(), Options{}); err == nil {
					t.Error("there is no error")
				}
				if took := time.Since(start); tries != tc.tries || took > tc.atMost {
					t.Errorf("%d tries in %s, want %d in at most %s", tries, took, tc.tries, tc.atMost)
				}
			})
		})
	}
}

func TestRunRetriesAndTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f := mustNew(t,
			Task{ID: "shaky", Retry: wait.Backoff{Duration: time.Second, Factor: 2, Steps: 5}, Run: func(context.Context) error {
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			}},
			Task{ID: "slow", Run: takes(time.Hour), Timeout: time.Minute},
			Task{
				ID: "never", Retry: wait.Backoff{Duration: time.Second, Steps: 1000}, Timeout: time.Minute,
				Run: func(context.Context) error { return errors.New("port closed") },
			},
		)
		start := time.Now()
		_, err := f.Run(t.Context(), Options{})
		var failed *Error
		if !errors.As(err, &failed) || len(failed.Tasks) != 2 {
			t.Fatalf("Run() = %v", err)
		}
		if got, want := failed.Tasks[0].Error(), `task "slow": timed out after 1m0s: context deadline exceeded`; got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if got, want := failed.Tasks[1].Error(), `task "never": port closed`; got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if tries != 3 || time.Since(start) != time.Minute {
			t.Errorf("%d attempts, %s", tries, time.Since(start))
		}
	})
}

func TestRunStartsNoTasksAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	shutdown := errors.New("shutting down")
	f := mustNew(t,
		Task{ID: "first", Run: func(context.Context) error { cancel(shutdown); return nil }},
		Task{ID: "second", Run: nothing, After: []string{"first"}},
	)
	_, err := f.Run(ctx, Options{})
	var failed *Error
	if !errors.As(err, &failed) || !errors.Is(err, shutdown) {
		t.Fatalf("Run() = %v", err)
	}
	if diff := cmp.Diff([]string{"second"}, failed.Waiting); diff != "" {
		t.Errorf("Waiting (-want +got):\n%s", diff)
	}
}

func TestProgress(t *testing.T) {
	f := mustNew(t,
		Task{ID: "a", Title: "Creating a", Run: nothing},
		Task{ID: "b", Title: "Creating b", Run: func(context.Context) error { return errors.New("no") }, After: []string{"a"}},
		Task{ID: "c", Run: nothing, After: []string{"b"}},
	)
	var got []Progress
	_, _ = f.Run(t.Context(), Options{Progress: func(p Progress) { got = append(got, p) }})
	want := []Progress{
		{Total: 3},
		{Total: 3, Running: []string{"Creating a"}},
		{Total: 3, Done: 1, Running: []string{"Creating b"}},
		{Total: 3, Done: 1},
		{Total: 3, Done: 1, Failed: []string{"Creating b"}},
	}
	// The next task is reported as running in the same report as the end of the one before.
	if diff := cmp.Diff(want[len(want)-1], got[len(got)-1]); diff != "" {
		t.Errorf("last progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], got[:2]); diff != "" {
		t.Errorf("first progress (-want +got):\n%s", diff)
	}
	for p, percent := range map[int]int32{0: 0, 1: 33, 3: 100} {
		if got := (Progress{Total: 3, Done: p}).Percent(); got != percent {
			t.Errorf("%d of 3 is %d %%, want %d", p, got, percent)
		}
	}
	if got := (Progress{}).Percent(); got != 100 {
		t.Errorf("nothing to do is %d %%", got)
	}
}

func TestParallel(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	err := Parallel(t.Context(),
		func(context.Context) error { return a }, nothing, func(context.Context) error { return b }, func(context.Context) error { panic("c") })
	var fault *Panic
	if !errors.Is(err, a) || !errors.Is(err, b) || !errors.As(err, &fault) {
		t.Errorf("Parallel() = %v", err)
	}
}

func TestLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []int
		offer, stop := Latest(func(i int) {
			mu.Lock()
			got = append(got, i)
			mu.Unlock()
			<-time.After(time.Minute)
		})
		for i := range 10 {
			offer(i)
			if i == 0 {
				synctest.Wait()
			}
		}
		stop()
		stop()
		if diff := cmp.Diff([]int{0, 9}, got); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	})
}

func TestLatestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		begin := time.Now()
		offer, stop := LatestEvery(time.Minute, func(i int) { got = append(got, fmt.Sprintf("%d after %s", i, time.Since(begin))) })
		for i := range 13 {
			offer(i)
			<-time.After(10 * time.Second)
			synctest.Wait()
		}
		offer(13)
		stop() // does not wait for the end of the period
		if diff := cmp.Diff([]string{"0 after 0s", "5 after 1m0s", "11 after 2m0s", "13 after 2m10s"}, got); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	})
}

func TestManyTasks(t *testing.T) {
	var tasks []Task
	var sum atomic.Int64
	for i := range 300 {
		task := Task{ID: fmt.Sprint(i), Run: func(context.Context) error { sum.Add(1); return nil }}
		for j := max(0, i-3); j < i; j += 2 {
			task.After = append(task.After, fmt.Sprint(j))
		}
		tasks = append(tasks, task)
	}
	if _, err := mustNew(t, tasks...).Run(t.Context(), Options{}); err != nil || sum.Load() != 300 {
		t.Errorf("%d tasks ran: %v", sum.Load(), err)
	}
}

// A run may be stopped by an error: what runs is interrupted, and is not reported as failed.
// TestRunStopsOnAnyError tests that tasks which are interrupted do not count as failed although any error stops the flow.
func TestRunStopsOnAnyError(t *testing.T) {
	for name, interruption := range map[string]func(context.Context) error{
		"cause": context.Cause,
		"error": context.Context.Err,
		"text":  func(ctx context.Context) error { return errors.New("read body: " + ctx.Err().Error()) },
	} {
		t.Run(name, func(t *testing.T) {
			f := mustNew(t,
				Task{ID: "volumes", Run: func(context.Context) error { return errors.New("no credentials") }},
				Task{ID: "bucket", Run: func(ctx context.Context) error {
					<-ctx.Done()
					return interruption(ctx)
				}},
			)
			_, err := f.Run(t.Context(), Options{StopOn: func(error) bool { return true }})
			var failed *Error
			if !errors.As(err, &failed) || len(failed.Tasks) != 1 || failed.Tasks[0].ID != "volumes" || len(failed.Waiting) != 1 {
				t.Errorf("Run() = %v, want the error of volumes only", err)
			}
		})
	}
}

func TestRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, quota := time.Now(), errorcode.With(errors.New("no quota"), corev1beta1.ErrorInfraQuotaExceeded)
		var tries int
		f := mustNew(t,
			Task{ID: "early", Run: func(context.Context) error { return errors.New("no luck") }},
			Task{ID: "dns", Retry: writeRetry, Run: func(ctx context.Context) error {
				tries++
				return errors.Join(takes(time.Second)(ctx), quota)
			}},
			Task{ID: "worker", Run: takes(time.Hour)},
			Task{ID: "tunnel", Run: nothing, After: []string{"worker"}},
		)
		var reported Progress
		_, err := f.Run(t.Context(), Options{
			StopOn: func(err error) bool { return errors.Is(err, quota) }, Progress: func(p Progress) { reported = p },
		})
		var failed *Error
		if !errors.As(err, &failed) || len(failed.Tasks) != 2 || failed.Tasks[0].ID != "early" || failed.Tasks[1].ID != "dns" {
			t.Fatalf("Run() = %v, want errors of the tasks that failed by themselves", err)
		}
		if diff := cmp.Diff([]string{"worker", "tunnel"}, failed.Waiting); diff != "" {
			t.Errorf("waiting (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took != time.Second || tries != 1 {
			t.Errorf("it took %s and %d tries", took, tries)
		}
		if len(reported.Failed) != 2 {
			t.Errorf("reported as failed are %q", reported.Failed)
		}
	})
}

// A try that takes long is the last one, as another one would keep a worker from other objects.
func TestRetryFor(t *testing.T) {
	for name, tc := range map[string]struct {
		retryFor time.Duration
		retryIf  func(error) bool
		// takes is how long each try takes.
		takes time.Duration
		want  int
	}{
		"short tries": {retryFor: 10 * time.Second, takes: time.Second, want: 5},
		"long tries":  {retryFor: 10 * time.Second, takes: 6 * time.Second, want: 2},
		"no limit":    {takes: time.Hour, want: 5},
		"some errors": {retryIf: func(err error) bool { return err.Error() == "away" }, want: 5},
		"not others":  {retryIf: func(err error) bool { return err.Error() != "away" }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock, tries := clocktesting.NewFakeClock(time.Unix(0, 0)), 0
			f, err := New("test", Task{ID: "a", RetryFor: tc.retryFor, RetryIf: tc.retryIf, Retry: wait.Backoff{Steps: 5, Duration: time.Nanosecond}, Run: func(context.Context) error {
				tries++
				clock.Step(tc.takes)
				return errors.New("away")
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Run(t.Context(), Options{Clock: clock}); err == nil || tries != tc.want {
				t.Errorf("%d tries, want %d (%v)", tries, tc.want, err)
			}
		})
	}
}
