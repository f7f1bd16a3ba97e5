// Package cleanup is the stage that deletes, in a cluster that is deleted, the objects of users which could block its deletion (webhooks,
// admission policies, extended APIs) or have something in the infrastructure (workloads, load balancers, volumes, snapshots). Source: the
// document "Cleanup of Shoot Clusters in Deletion" of the original.
package cleanup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Periods are for how long objects may keep their finalizers.
	Periods Periods
	// OnlyInfrastructure keeps what costs nothing in the infrastructure, but for webhooks and admission policies.
	OnlyInfrastructure bool
	// Failed are the IDs of tasks that have failed in the pass before.
	Failed []string
}

// repeatedWait is for how long a task waits that has failed in the pass before. Users decide how long their objects keep their finalizers: as many shoots as
// there are workers would hold all of these most of the time. Passes are repeated, and each deletes and finalizes what it can.
const repeatedWait = 30 * time.Second

// Tasks returns the tasks of the stage. Webhooks are deleted first, as their pods may not run any more. Extended APIs are deleted while the
// controllers of their resources still run.
func Tasks(in Inputs) []flow.Task {
	task := func(id, title string, kinds []kind, after ...string) flow.Task {
		wait := stage.ExtensionTimeout
		if slices.Contains(in.Failed, id) {
			wait = repeatedWait
		}
		return flow.Await(stage.ExtensionTimeout, id, title, func(ctx context.Context) error { return in.clean(ctx, kinds, wait) }, after...)
	}
	const webhooks, extendedAPIs = "clean-webhooks", "clean-extended-apis"
	last := webhooks
	tasks := []flow.Task{task(webhooks, "Deleting webhooks and admission policies of the shoot", in.webhooks(),
		"kube-apiserver-ready", "kube-controller-manager", "control-plane")}
	if !in.OnlyInfrastructure {
		last = extendedAPIs
		tasks = append(tasks, task(extendedAPIs, "Deleting APIServices and CustomResourceDefinitions of the shoot", in.extendedAPIs(), webhooks))
	}
	return append(tasks,
		task("clean-shoot", "Deleting workloads, load balancers and volumes of the shoot", in.resources(), last),
		task("clean-snapshots", "Deleting volume snapshots of the shoot", in.snapshots(), last),
	)
}

// clean deletes the objects of some kinds, in the order of the kinds, and then waits for a time until they are gone.
func (in Inputs) clean(ctx context.Context, kinds []kind, wait time.Duration) error {
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	var waits []func(context.Context) error
	for _, k := range kinds {
		remain, err := k.delete(ctx, shootClient)
		if err != nil {
			return err
		}
		if remain {
			waits = append(waits, func(ctx context.Context) error { return k.await(ctx, shootClient, in.Run.Clock) })
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("not done within %s", wait))
	defer cancel()
	return flow.Parallel(ctx, waits...)
}
