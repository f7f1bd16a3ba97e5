// Package containerruntime is the stage for ContainerRuntimes: additional runtimes that are installed on the nodes of worker pools.
package containerruntime

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/shoot/state"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// timeout is the end of a wait for extensions: they only write objects into the cluster, whose pods are not waited for.
const timeout = 3 * time.Minute

// Runtime is an additional runtime of a worker pool.
type Runtime struct {
	// Type is that of the runtime, and Pool the name of the worker pool.
	Type, Pool string
	// Config is its configuration in the Shoot. It may be nil.
	Config *runtime.RawExtension
}

// name is that of the ContainerRuntime.
func (r Runtime) name() string { return r.Type + "-" + r.Pool }

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Desired are the runtimes of all worker pools.
	Desired []Runtime
	// Removed are those that no pool had any more when the control plane left another seed. They are restored, so that they can be deleted.
	Removed []Runtime
	// Hibernated is whether there is no kube-apiserver to wait for.
	Hibernated bool
	// Restores is whether the control plane is restored on another seed.
	Restores bool
}

// Desired returns the runtimes of all worker pools.
func Desired(workers []corev1beta1.Worker) []Runtime {
	var all []Runtime
	for i := range workers {
		if workers[i].CRI == nil {
			continue
		}
		for _, r := range workers[i].CRI.ContainerRuntimes {
			all = append(all, Runtime{Type: r.Type, Pool: workers[i].Name, Config: r.ProviderConfig})
		}
	}
	return all
}

// Removed returns the runtimes that a ShootState has because no pool had them any more.
func Removed(saved *corev1beta1.ShootStateSpec) []Runtime {
	var all []Runtime
	for _, spec := range state.ContainerRuntimes(saved) {
		all = append(all, Runtime{Type: spec.Type, Pool: spec.WorkerPool.Name, Config: spec.ProviderConfig})
	}
	return all
}

// Tasks returns the tasks of the stage. In a hibernated cluster, ContainerRuntimes stay as they are, as there are no nodes. They are only restored there,
// so that their states are not lost.
func Tasks(in Inputs) []flow.Task {
	reconcile := flow.Await(timeout, "container-runtimes", "Waiting until ContainerRuntimes are ready", in.reconcile, "namespace", "cluster").
		IfPresent(stage.BeforeExtensions...).IfPresent("infrastructure") // which completes the networks in the Cluster resource
	switch {
	case !in.Hibernated:
		reconcile.After = append(reconcile.After, "kube-apiserver-ready")
		return []flow.Task{
			reconcile.IfPresent("tokens"), // that of the kubeconfig with which extensions connect
			// Afterwards: an extension deletes what all pools share when none has the type, and another pool may have taken it over.
			flow.Await(timeout, "stale-container-runtimes", "Deleting unused ContainerRuntimes", in.deleteStale, reconcile.ID),
		}
	case in.Restores:
		return []flow.Task{reconcile}
	}
	return nil
}

// Deletion returns the task that deletes all ContainerRuntimes and waits until they are gone.
func Deletion(run *stage.Run, after ...string) flow.Task {
	return flow.Await(timeout, "container-runtimes-gone", "Deleting ContainerRuntimes", Inputs{Run: run}.deleteStale, after...)
}

// desires says whether a ContainerRuntime is that of a worker pool.
func (in Inputs) desires(name string) bool {
	return slices.ContainsFunc(in.Desired, func(r Runtime) bool { return r.name() == name })
}

func (in Inputs) reconcile(ctx context.Context) error {
	removed, err := in.removed(ctx)
	if err != nil {
		return err
	}
	extend := make([]func(context.Context) error, 0, len(in.Desired)+len(removed))
	for _, r := range in.Desired {
		extend = append(extend, func(ctx context.Context) error { return stage.Extend(ctx, in.Run, in.object(r), r.set) })
	}
	for _, r := range removed {
		extend = append(extend, func(ctx context.Context) error { return in.restoreRemoved(ctx, r) })
	}
	return flow.Parallel(ctx, extend...)
}

func (in Inputs) object(r Runtime) *extensionsv1alpha1.ContainerRuntime {
	return &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: in.Run.Namespace, Name: r.name()}}
}

// restoreRemoved restores a runtime that is deleted afterwards. Whether it works again does not matter: it is enough that its extension has its finalizer on it, so
// that it deletes what it has in the shoot.
func (in Inputs) restoreRemoved(ctx context.Context, r Runtime) error {
	obj := in.object(r)
	if err := stage.WriteExtension(ctx, in.Run, obj, r.set); err != nil || in.Run.SkipReadiness {
		return err
	}
	return extensionobject.AwaitReport(ctx, in.Run.ExtensionValues(), obj, func(current extensionsv1alpha1.Object) bool {
		return len(current.GetFinalizers()) > 0
	})
}

// removed returns what is restored only to be deleted: without an extension on this seed, which the shoot no longer needs, it would keep the shoot from running.
func (in Inputs) removed(ctx context.Context) ([]Runtime, error) {
	var runtimes []Runtime
	for _, r := range in.Removed {
		if in.desires(r.name()) { // a pool has it again
			continue
		}
		extension, err := in.Run.Controller(ctx, extensionsv1alpha1.ContainerRuntimeResource, r.Type)
		if err != nil {
			return nil, fmt.Errorf("find the extension of ContainerRuntime %q: %w", r.name(), err)
		}
		if extension == nil {
			logf.FromContext(ctx).Info("Leaving objects of a removed ContainerRuntime in the shoot, as its extension is not on this seed", "containerRuntime", r.name())
			continue
		}
		runtimes = append(runtimes, r)
	}
	return runtimes, nil
}

// set sets the spec of a ContainerRuntime.
func (r Runtime) set(obj *extensionsv1alpha1.ContainerRuntime) {
	obj.Spec = extensionsv1alpha1.ContainerRuntimeSpec{
		DefaultSpec: stage.DefaultSpec(obj.Spec.Class, r.Type, r.Config),
		BinaryPath:  extensionsv1alpha1.ContainerDRuntimeContainersBinFolder,
		WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
			Name: r.Pool,
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{
				constants.WorkerPool: r.Pool, constants.WorkerPoolDeprecated: r.Pool,
			}},
		},
	}
}

// deleteStale deletes the ContainerRuntimes that are not desired.
func (in Inputs) deleteStale(ctx context.Context) error {
	list := &extensionsv1alpha1.ContainerRuntimeList{}
	if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list ContainerRuntimes: %w", err)
	}
	var deletions []func(context.Context) error
	for i := range list.Items {
		obj := &list.Items[i]
		if !in.desires(obj.Name) {
			deletions = append(deletions, func(ctx context.Context) error { return in.Run.DeleteExtension(ctx, obj) })
		}
	}
	return flow.Parallel(ctx, deletions...)
}
