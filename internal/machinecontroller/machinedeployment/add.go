// Package machinedeployment replaces the machines of MachineDeployments when their template changes, a few at a time, or has them updated in place.
//
// In the control cluster it reads and writes Machines, MachineSets and MachineDeployments. In the target cluster it taints the Nodes that will be
// replaced, and marks those that are updated in place.
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
)

// passTimeout limits a pass, which takes a few requests per set and Node.
const passTimeout = 2 * time.Minute

// Values configure the controller.
type Values struct {
	// Target is the target cluster.
	Target cluster.Cluster
	// ConcurrentSyncs is how many deployments are reconciled at a time.
	ConcurrentSyncs int
	// Clock has the time for conditions.
	Clock clock.PassiveClock
}

// Add adds the controller.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		controlCache: mgr.GetClient(), controlAPI: mgr.GetAPIReader(), targetCache: v.Target.GetClient(), targetAPI: v.Target.GetAPIReader(),
		events: mgr.GetEventRecorder(machinecontrollermanager.Name), clock: v.Clock,
	}
	return builder.ControllerManagedBy(mgr).Named("machinedeployment").
		// Only this controller writes the status. A label freezes the deployment, and an annotation removes the label.
		For(&machinev1alpha1.MachineDeployment{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		Owns(&machinev1alpha1.MachineSet{}).
		// Nodes of old machines are marked, a Recreate waits for the last machine of old sets, and updates in place follow each other.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, machine client.Object) []reconcile.Request {
			return deploymentOf(ctx, mgr.GetClient(), machine)
		}), builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, phaseChanged()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// phaseChanged selects updates of Machines that may end an update in place, or make room for the next one.
func phaseChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isMachine := e.ObjectOld.(*machinev1alpha1.Machine)
		after, same := e.ObjectNew.(*machinev1alpha1.Machine)
		return isMachine && same && before.Status.CurrentStatus.Phase != after.Status.CurrentStatus.Phase
	}}
}

// deploymentOf maps a Machine to the deployment of its set.
func deploymentOf(ctx context.Context, c client.Reader, machine client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(machine)
	if owner == nil {
		return nil
	}
	set := &machinev1alpha1.MachineSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}, set); err != nil {
		return nil // the deletion of a set has its own event
	}
	if owner = metav1.GetControllerOf(set); owner == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}}}
}
