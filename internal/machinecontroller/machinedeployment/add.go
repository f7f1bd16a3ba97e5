// Package machinedeployment brings the machines of MachineDeployments to their template, a few at a time.
//
// In the control cluster it reads Machines, and reads and writes MachineSets and MachineDeployments. In the target cluster it taints the
// Nodes that will be replaced. Updates in place are not done: a deployment that asks for them keeps its machines, and says so.
package machinedeployment

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// passTimeout limits a pass, which is a few requests per set and Node.
const passTimeout = 2 * time.Minute

// Add adds the controller.
func Add(mgr manager.Manager, target cluster.Cluster, concurrency int, c clock.PassiveClock) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), targetClient: target.GetClient(),
		events: mgr.GetEventRecorder("machine-controller-manager"), clock: c,
	}
	return builder.ControllerManagedBy(mgr).Named("machinedeployment").
		// The status is our own writing. A label may freeze the deployment, and an annotation take it off.
		For(&machinev1alpha1.MachineDeployment{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		Owns(&machinev1alpha1.MachineSet{}).
		// Nodes of old machines are tainted, and the last machine of an old set may be what is waited for.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, machine client.Object) []reconcile.Request {
			return deploymentOf(ctx, mgr.GetClient(), machine)
		}), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// deploymentOf leads from a machine over its set to its deployment.
func deploymentOf(ctx context.Context, c client.Reader, machine client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(machine)
	if owner == nil {
		return nil
	}
	set := &machinev1alpha1.MachineSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}, set); err != nil {
		return nil // a set that is gone has had its own event
	}
	if owner = metav1.GetControllerOf(set); owner == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}}}
}
