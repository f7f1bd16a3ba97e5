// Package flow runs tasks that depend on each other, with as much concurrency as their dependencies allow.
//
// A flow only has the tasks that its object needs, such as a hibernated Shoot. Every task is idempotent: after an interruption the
// flow runs again from the start, and tasks that were done before end quickly. State is in the objects that tasks write, never in the
// flow.
package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Task is one step of a flow.
type Task struct {
	// ID identifies the task, such as "etcd-main". It is stable: users see it in status.lastErrors.
	ID string
	// Title says what the task does, such as "Deploying etcd", for status.lastOperation. The default is the ID.
	Title string
	// After are the IDs of the tasks whose results this one needs. Each must be in the flow.
	After []string
	// AfterIfPresent are IDs of tasks that come before this one if the flow has them.
	AfterIfPresent []string
	// Run does the work. It must be idempotent, and return soon after its context ends.
	Run func(ctx context.Context) error
	// Timeout limits all attempts of the task together. Zero means no limit but that of the flow.
	Timeout time.Duration
	// Retry is the backoff with which a failed Run is retried within this run of the flow. The zero value means no retries.
	Retry wait.Backoff
	// RetryFor is how long after its start a failed task is not retried any more, whatever Retry says. Zero means no such limit.
	RetryFor time.Duration
	// RetryIf says which errors are retried. Nil means all but those that only the user can fix.
	RetryIf func(error) bool
}

// Flow is a set of tasks whose dependencies have no cycle. It can be run many times.
type Flow struct {
	name  string
	tasks []*node // in an order that respects the dependencies
}

// node is a task in its graph.
type node struct {
	Task
	before []*node
	after  []*node
}

// New returns a flow of tasks, or an error with all that is wrong with them. The name is for errors, logs and metrics, such as "Shoot reconciliation".
func New(name string, tasks ...Task) (*Flow, error) {
	var errs []error
	byID := map[string]*node{}
	nodes := make([]*node, 0, len(tasks))
	for _, task := range tasks {
		if task.Title == "" {
			task.Title = task.ID
		}
		n := &node{Task: task}
		switch {
		case task.ID == "":
			errs = append(errs, fmt.Errorf("task %q has no ID", task.Title))
		case byID[task.ID] != nil:
			errs = append(errs, fmt.Errorf("task %q exists twice", task.ID))
		case task.Run == nil:
			errs = append(errs, fmt.Errorf("task %q has no Run", task.ID))
		}
		byID[task.ID] = n
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		for _, id := range n.After {
			if byID[id] == nil {
				errs = append(errs, fmt.Errorf("task %q comes after %q, which does not exist", n.ID, id))
			}
		}
		for _, id := range slices.Concat(n.After, n.AfterIfPresent) {
			if first := byID[id]; first != nil && !slices.Contains(n.after, first) {
				n.after = append(n.after, first)
				first.before = append(first.before, n)
			}
		}
	}
	f := &Flow{name: name}
	if len(errs) == 0 {
		var err error
		f.tasks, err = sorted(nodes)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("flow %q: %w", name, err)
	}
	return f, nil
}

// sorted returns the tasks in an order that respects their dependencies, and otherwise in the given order.
func sorted(nodes []*node) ([]*node, error) {
	var order []*node
	waits := map[*node]int{}
	for _, n := range nodes {
		waits[n] = len(n.after)
	}
	for len(order) < len(nodes) {
		i := slices.IndexFunc(nodes, func(n *node) bool { return waits[n] == 0 })
		if i < 0 {
			var cycle []string
			for _, n := range nodes {
				if waits[n] > 0 {
					cycle = append(cycle, n.ID)
				}
			}
			return nil, fmt.Errorf("these tasks depend on each other: %s", strings.Join(cycle, ", "))
		}
		n := nodes[i]
		waits[n] = -1
		order = append(order, n)
		for _, next := range n.before {
			waits[next]--
		}
	}
	return order, nil
}

// Name is the name of the flow.
func (f *Flow) Name() string { return f.name }

// UpTo returns the flow that ends with one task: it has this one, and those that come before it.
func (f *Flow) UpTo(id string) (*Flow, error) {
	last := slices.IndexFunc(f.tasks, func(n *node) bool { return n.ID == id })
	if last < 0 {
		return nil, fmt.Errorf("flow %q: there is no task %q", f.name, id)
	}
	needed := map[*node]bool{f.tasks[last]: true}
	var tasks []Task
	for _, n := range slices.Backward(f.tasks[:last+1]) { // dependencies of a task are in front of it
		if !needed[n] {
			continue
		}
		for _, first := range n.after {
			needed[first] = true
		}
		tasks = append(tasks, n.Task)
	}
	slices.Reverse(tasks)
	return New(f.name, tasks...)
}

// String lists the tasks, each with its dependencies, in an order that respects them. It is stable, for golden files.
func (f *Flow) String() string {
	var out strings.Builder
	for _, n := range f.tasks {
		out.WriteString(n.ID)
		for i, first := range n.after {
			if i == 0 {
				out.WriteString(" <- ")
			} else {
				out.WriteString(", ")
			}
			out.WriteString(first.ID)
		}
		out.WriteString("\n")
	}
	return out.String()
}
