package flow

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// writeTimeout is the end of a task that only writes objects, over all its tries.
const writeTimeout = 2 * time.Minute

// writeRetry is how a task that only writes objects is retried within a run: a webhook or a leader may be away for a moment.
var writeRetry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Steps: 5, Jitter: 0.1}

// writeRetryFor is for how long such a task is retried. A request that takes longer, such as one that a webhook does not respond to in time, is not away for a moment:
// another try would keep a worker from other objects. The next run is the next try.
const writeRetryFor = 10 * time.Second

// Do returns a task that writes objects and does not wait for others to act on them. It has two minutes, and is retried in its first
// seconds. The arguments are the fields ID, Title, Run and After of the task.
func Do(id, title string, run func(context.Context) error, after ...string) Task {
	return Task{ID: id, Title: title, Run: run, After: after, Timeout: writeTimeout, Retry: writeRetry, RetryFor: writeRetryFor}
}

// awaitRetry is how a task that waits is retried while an API server is away, such as one that is restarted: for more than a minute.
var awaitRetry = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 7, Jitter: 0.1}

// Await returns a task that waits for others, such as for a Deployment or for an extension. It is not retried before its timeout, as the
// wait itself watches and says what is missing, unless an API server is away: the next run of the flow would only come when all other tasks that wait have ended.
func Await(timeout time.Duration, id, title string, run func(context.Context) error, after ...string) Task {
	return Task{ID: id, Title: title, Run: run, After: after, Timeout: timeout, Retry: awaitRetry, RetryIf: away}
}

// away says whether an API server does not serve requests for a while, as it says itself.
func away(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

// IfPresent returns the task with more tasks that it comes after where the flow has them.
func (t Task) IfPresent(ids ...string) Task {
	t.AfterIfPresent = slices.Concat(t.AfterIfPresent, ids)
	return t
}

// Without returns the tasks except those with some IDs. What comes after one of these comes after what that comes after.
func Without(tasks []Task, ids ...string) []Task {
	left := map[string]Task{}
	for _, t := range tasks {
		if slices.Contains(ids, t.ID) {
			left[t.ID] = t
		}
	}
	var resolve func([]string, func(Task) []string) []string
	resolve = func(after []string, of func(Task) []string) (out []string) {
		for _, id := range after {
			if t, ok := left[id]; ok {
				out = append(out, resolve(of(t), of)...)
			} else {
				out = append(out, id)
			}
		}
		return out
	}
	required := func(t Task) []string { return t.After }
	// What is only present in some flows may come before what is required, so that both ways are followed.
	all := func(t Task) []string { return slices.Concat(t.After, t.AfterIfPresent) }
	var out []Task
	for _, t := range tasks {
		if _, ok := left[t.ID]; ok {
			continue
		}
		t.After, t.AfterIfPresent = resolve(t.After, required), resolve(all(t), all)
		out = append(out, t)
	}
	return out
}

// Last returns the IDs of the tasks that no other task of the list comes after. A task after them comes after the whole list.
func Last(tasks []Task) []string {
	followed := map[string]bool{}
	for _, t := range tasks {
		for _, id := range slices.Concat(t.After, t.AfterIfPresent) {
			followed[id] = true
		}
	}
	var last []string
	for _, t := range tasks {
		if !followed[t.ID] {
			last = append(last, t.ID)
		}
	}
	return last
}
