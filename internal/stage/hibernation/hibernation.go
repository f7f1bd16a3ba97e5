// Package hibernation is the stage that stops a control plane after everything else is done: first the components that write to the
// cluster, last etcd.
package hibernation

import (
	"context"

	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are functions that deploy components without pods.
type Inputs struct {
	// Controllers are kube-controller-manager and, with nodes, kube-scheduler.
	Controllers []func(context.Context) error
	// ResourceManager is gardener-resource-manager.
	ResourceManager func(context.Context) error
	// APIServer are kube-apiserver and, with nodes, vpn-seed-server.
	APIServer []func(context.Context) error
	// Etcd are the etcds main and events.
	Etcd []func(context.Context) error
}

// Tasks returns the tasks of the stage. They come after all tasks of a list.
func Tasks(in Inputs, others []flow.Task) []flow.Task {
	after := flow.Last(others)
	return []flow.Task{
		flow.Do("stop-controllers", "Stopping kube-controller-manager and kube-scheduler", inOrder(in.Controllers), after...),
		flow.Do("stop-resource-manager", "Stopping gardener-resource-manager", in.ResourceManager, after...),
		flow.Do("stop-kube-apiserver", "Stopping kube-apiserver", inOrder(in.APIServer), "stop-controllers", "stop-resource-manager"),
		flow.Do("stop-etcd", "Stopping etcd", inOrder(in.Etcd), "stop-kube-apiserver"),
	}
}

// inOrder runs functions one after the other, up to the first error.
func inOrder(functions []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, run := range functions {
			if err := run(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
