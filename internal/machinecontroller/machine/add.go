// Package machine reconciles Machines: it creates machines at the infrastructure, waits until they have joined as Nodes, checks their
// health, applies the node template to their Nodes, and drains and deletes them.
//
// In the control cluster it reads Machines, MachineClasses and their Secrets, and writes Machines. In the target cluster it reads Nodes,
// pods and VolumeAttachments, and writes Nodes, evictions of pods and bootstrap tokens. The driver accesses the infrastructure.
package machine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/bootstraptoken"
	"gardener.cloud/gardener/internal/machinecontroller/drain"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// passTimeout limits a pass. A request to an infrastructure may take minutes.
const passTimeout = 5 * time.Minute

// firstRetry and lastRetry are the shortest and longest delay before a machine is retried after an error. However long a cluster was not
// available, machines are reconciled soon after it is again.
const firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second

// Values configure the controller.
type Values struct {
	// Target is the target cluster.
	Target cluster.Cluster
	// Driver creates and deletes the machines.
	Driver driver.Driver
	// Limits are those of machines that have none of their own.
	Limits Limits
	// PVDetachTimeout is how long volumes may take to be detached from a drained Node.
	PVDetachTimeout time.Duration
	// MaxReplaced is how many machines of a pool may be failed, deleted or joining at the same time for an unhealthy one to become Failed.
	MaxReplaced int
	// TokenGroups are groups of the users of bootstrap tokens, separated by commas.
	TokenGroups string
	// Reachable returns whether the target cluster can be reached, and since when, if there was an outage.
	Reachable func() (since time.Time, now bool)
	// ConcurrentSyncs is how many machines are reconciled at a time.
	ConcurrentSyncs int
	// Clock measures the times in a machine's life.
	Clock clock.PassiveClock
}

// Add adds the controller to the manager of the control cluster.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		controlCache: mgr.GetClient(), controlAPI: mgr.GetAPIReader(), targetCache: v.Target.GetClient(), targetAPI: v.Target.GetAPIReader(),
		driver: v.Driver, tokens: &bootstraptoken.Tokens{TargetCache: v.Target.GetClient(), ExtraGroups: v.TokenGroups},
		drainer: &drain.Drainer{TargetCache: v.Target.GetClient()}, events: mgr.GetEventRecorder(machinecontrollermanager.Name),
		clock: v.Clock, limits: v.Limits, pvDetach: v.PVDetachTimeout, maxReplaced: v.MaxReplaced, reachable: v.Reachable,
	}
	nodes := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, node *corev1.Node) []reconcile.Request {
		return machinesOf(ctx, mgr.GetClient(), node)
	})
	b := builder.ControllerManagedBy(mgr).Named("machine").
		For(&machinev1alpha1.Machine{}, builder.WithPredicates(changed())).
		// A change of a class may fix what kept its machines from being created, and its virtual capacity is written to Nodes.
		Watches(&machinev1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, class client.Object) []reconcile.Request {
			return machinesOfClass(ctx, mgr.GetClient(), class)
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(v.Target.GetCache(), &corev1.Node{}, nodes, nodeChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: v.ConcurrentSyncs, ReconciliationTimeout: passTimeout,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
	if notifier, ok := v.Driver.(driver.Notifier); ok {
		b = b.WatchesRawSource(notifier.Changes(&handler.EnqueueRequestForObject{}))
	}
	return b.Complete(r)
}

// changed selects updates of Machines that may change what is to be done, and those of the status, which only this controller writes, but for the time until
// which a machine is kept: a phase that was decided by an old cache is corrected. The last operation has errors of infrastructures, which must not be retried at once.
func changed() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionStarted(),
		kube.StatusChanged(func(m *machinev1alpha1.Machine) any {
			return []any{m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.PreserveExpiryTime, m.Status.Conditions, m.Status.Addresses}
		}))
}

// deletionStarted selects updates in which the deletion of an object begins, which changes neither labels nor annotations.
func deletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	}}
}

// machinesOfClass maps a class to its Machines.
func machinesOfClass(ctx context.Context, c client.Reader, class client.Object) []reconcile.Request {
	machines := &machinev1alpha1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(class.GetNamespace())); err != nil {
		return nil // the cache has not started; each Machine is reconciled when it has
	}
	var requests []reconcile.Request
	for i := range machines.Items {
		if machine := &machines.Items[i]; machine.Spec.Class.Name == class.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(machine)})
		}
	}
	return requests
}

// machinesOf maps a Node to its Machine, or to those that have not joined yet, as it may be the Node of any of them.
func machinesOf(ctx context.Context, c client.Reader, node *corev1.Node) []reconcile.Request {
	machines := &machinev1alpha1.MachineList{}
	if err := c.List(ctx, machines); err != nil {
		return nil // the cache has not started; each Machine is reconciled when it has
	}
	var found, joining []reconcile.Request
	for i := range machines.Items {
		machine := &machines.Items[i]
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(machine)}
		switch machine.Labels[machinev1alpha1.NodeLabelKey] {
		case node.Name:
			found = append(found, request)
		case "":
			joining = append(joining, request)
		}
	}
	if len(found) > 0 {
		return found
	}
	return joining
}

// nodeChanged selects updates that may change the phase of a Machine, or the virtual capacity, which kubelets set to zero after a reboot. Heartbeats, which
// are most updates by kubelets, do not.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return !sameConditions(before.Status.Conditions, after.Status.Conditions) ||
				!apiequality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses) ||
				!sameCapacity(before.Status.Capacity, after.Status.Capacity) ||
				!apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
				!apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
				!apiequality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
		},
	}
}
