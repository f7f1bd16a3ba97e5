// Package autoscaling is the stage for the cluster-autoscaler, which changes the number of nodes of a cluster between the bounds of its worker pools.
// It also has the tasks for the Vertical Pod Autoscaler, which changes the requests of pods in the cluster.
// Source: nodes-and-autoscaling.md 1.1.
package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/clusterautoscaler"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube/removaltaint"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Desired is whether the cluster has a cluster-autoscaler.
	Desired bool
	// Hibernates is whether the cluster is being hibernated: the cluster-autoscaler is stopped before its machines are deleted.
	Hibernates bool
	// Nodes is what the stage for nodes has found. It is read after its task worker-deployed.
	Nodes *nodes.Result
	// Values returns the values of the cluster-autoscaler, given MachineDeployments and the number of machines. It is called when the tasks credentials and
	// infrastructure are done.
	Values func(replicas int32, deployments []extensionsv1alpha1.MachineDeployment, machines int) (clusterautoscaler.Values, error)
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	switch {
	case !in.Desired:
		stale := flow.Await(stage.PodsTimeout, "stale-cluster-autoscaler", "Deleting unused cluster-autoscaler", remove(in.Run, !in.Hibernates), "namespace")
		return []flow.Task{stale.IfPresent("kube-apiserver-ready")} // nodes are read
	case in.Hibernates:
		return []flow.Task{flow.Await(stage.PodsTimeout, "stop-cluster-autoscaler", "Scaling down cluster-autoscaler", in.stop, "credentials", "infrastructure")}
	}
	// It does not come after the task worker: machines that the Worker waits for may need another one, for pods that there is no room for.
	return []flow.Task{
		flow.Await(stage.ExtensionTimeout, "cluster-autoscaler", "Deploying cluster-autoscaler", in.deploy, "tokens", "worker-deployed"),
	}
}

// Deletion returns the task that deletes the cluster-autoscaler of a cluster that is deleted: it must not start machines for pods that are deleted.
func Deletion(run *stage.Run, after ...string) flow.Task {
	return flow.Await(stage.PodsTimeout, "cluster-autoscaler-gone", "Deleting cluster-autoscaler", remove(run, false), after...)
}

// errTooEarly is the error of a task that should come after the task worker-deployed.
var errTooEarly = errors.New("the Worker is read before the task worker-deployed is done")

// deploy deploys the cluster-autoscaler with the groups of nodes that the extension reports for the current spec of the Worker.
func (in Inputs) deploy(ctx context.Context) error {
	if in.Nodes.Worker == nil {
		return errTooEarly
	}
	worker := in.Run.Worker()
	if err := extensionobject.AwaitReport(ctx, in.Run.ExtensionValues(), worker, func(current extensionsv1alpha1.Object) bool {
		return reported(in.Nodes.Worker, current.(*extensionsv1alpha1.Worker)) //nolint:forcetypeassert // the kind that is waited for
	}); err != nil {
		return err
	}
	return in.apply(ctx, 1, worker.Status.MachineDeployments)
}

// reported reports whether an extension has reported the MachineDeployments of a Worker since it was written.
func reported(before, now *extensionsv1alpha1.Worker) bool {
	last := now.Status.MachineDeploymentsLastUpdateTime
	return last != nil && (before.Status.MachineDeploymentsLastUpdateTime == nil || last.After(before.Status.MachineDeploymentsLastUpdateTime.Time))
}

// stop deploys the cluster-autoscaler without pods, and waits until there is none.
func (in Inputs) stop(ctx context.Context) error {
	worker := in.Run.Worker()
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(worker), worker); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Worker %q: %w", worker.Name, err)
	}
	if err := in.apply(ctx, 0, worker.Status.MachineDeployments); err != nil {
		return err
	}
	return in.Run.PodsGone(ctx, clusterautoscaler.Labels())
}

// apply writes the cluster-autoscaler with a number of pods, and its permissions in the cluster before.
func (in Inputs) apply(ctx context.Context, pods int32, deployments []extensionsv1alpha1.MachineDeployment) error {
	replicas, err := in.Run.ProtectedReplicas(ctx, clusterautoscaler.Name, pods)
	if err != nil {
		return err
	}
	machines, err := in.machines(ctx)
	if err != nil {
		return err
	}
	values, err := in.Values(replicas, deployments, machines)
	if err != nil {
		return err
	}
	permissions, err := clusterautoscaler.TargetObjects(values)
	if err != nil {
		return err
	}
	objects, err := clusterautoscaler.Objects(values)
	if err != nil {
		return err
	}
	if err := in.Run.ApplyManaged(ctx, clusterautoscaler.ManagedResourceName, permissions...); err != nil {
		return err
	}
	return in.Run.Apply(ctx, objects...)
}

// machines returns how many machines there are. There are none if the seed does not serve them.
func (in Inputs) machines(ctx context.Context) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind("MachineList"))
	err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	return len(list.Items), nil
}

// remove returns what a task does that deletes the cluster-autoscaler, if there is one. The pods end first, and what a repetition recognizes it by is deleted
// last. If nodes stay, they get pods again.
func remove(run *stage.Run, nodesStay bool) func(context.Context) error {
	return func(ctx context.Context) error {
		exists := false
		for name, object := range map[string]client.Object{clusterautoscaler.Name: &appsv1.Deployment{}, clusterautoscaler.ManagedResourceName: &resourcesv1alpha1.ManagedResource{}} {
			err := run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, object)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("read %T %q: %w", object, name, err)
			}
			exists = exists || err == nil
		}
		if !exists {
			return nil
		}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: clusterautoscaler.Name}}
		if err := run.Delete(ctx, deployment); err != nil {
			return err
		}
		if err := run.PodsGone(ctx, clusterautoscaler.Labels()); err != nil {
			return err
		}
		if nodesStay {
			if err := untaint(ctx, run); err != nil {
				return err
			}
		}
		objects, err := clusterautoscaler.Objects(clusterautoscaler.Values{Namespace: run.Namespace})
		if err != nil {
			return err
		}
		if err := run.Delete(ctx, objects...); err != nil {
			return err
		}
		return run.DeleteManaged(ctx, clusterautoscaler.ManagedResourceName)
	}
}

// untaintTimeout is how long nodes may take together. Users of the shoot decide how many there are, and how long their webhooks take.
const untaintTimeout = time.Minute

// untaint removes the taints of a cluster-autoscaler that was killed while it drained nodes: otherwise, it has removed them itself. A node that cannot be
// changed, such as by a webhook of a user, keeps it: that is no reason for the cluster to stay as it is.
func untaint(ctx context.Context, run *stage.Run) error {
	ctx, cancel := context.WithTimeout(ctx, untaintTimeout)
	defer cancel()
	shootClient, err := run.Target.Client(ctx)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := shootClient.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !slices.ContainsFunc(node.Spec.Taints, removaltaint.Is) {
			continue
		}
		if err := ctx.Err(); err != nil {
			logf.FromContext(ctx).Error(err, "More nodes stay tainted, although they are not drained any more", "first", node.Name)
			return nil
		}
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := shootClient.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
				return client.IgnoreNotFound(err)
			}
			before := node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, removaltaint.Is)
			return client.IgnoreNotFound(shootClient.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
		}); err != nil {
			logf.FromContext(ctx).Error(err, "Node stays tainted, although it is not drained any more", "node", node.Name)
		}
	}
	return nil
}
