// Package machine brings machines through their life: it has them made at the infrastructure, waits until they have joined as Nodes,
// watches over their health, brings their Nodes to their template, and drains, deletes and forgets them.
//
// In the control cluster it reads Machines, MachineClasses and their Secrets, and writes Machines. In the target cluster it reads Nodes,
// pods and VolumeAttachments, and writes Nodes, evictions of pods and bootstrap tokens. What the infrastructure needs is the driver's.
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
	"gardener.cloud/gardener/internal/machinecontroller/bootstraptoken"
	"gardener.cloud/gardener/internal/machinecontroller/drain"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// passTimeout limits a pass. An infrastructure may take minutes to answer.
const passTimeout = 5 * time.Minute

// firstRetry and lastRetry are how soon a machine is looked at again after an error. However long a cluster was away, machines go on soon
// when it is back.
const firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second

// Options are what the controller needs to know.
type Options struct {
	// Driver makes the machines.
	Driver driver.Driver
	// Limits are those of machines that have none of their own.
	Limits Limits
	// PVDetachTimeout is how long volumes may take to be detached from a drained Node.
	PVDetachTimeout time.Duration
	// MaxReplaced is how many machines of a pool may be on their way out or in when an unhealthy one fails.
	MaxReplaced int
	// TokenGroups are groups of machines that join, separated by commas.
	TokenGroups string
	// Reachable tells whether the target cluster can be reached, and since when, if there was an outage.
	Reachable func() (since time.Time, now bool)
	// Concurrency is how many machines are worked on at a time.
	Concurrency int
	// Clock is the time.
	Clock clock.PassiveClock
}

// Add adds the controller to the manager of the control cluster.
func Add(mgr manager.Manager, target cluster.Cluster, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), targetClient: target.GetClient(), targetReader: target.GetAPIReader(),
		driver: o.Driver, tokens: &bootstraptoken.Tokens{Client: target.GetClient(), ExtraGroups: o.TokenGroups},
		drainer: &drain.Drainer{Client: target.GetClient()}, events: mgr.GetEventRecorder("machine-controller-manager"),
		clock: o.Clock, limits: o.Limits, pvDetach: o.PVDetachTimeout, maxReplaced: o.MaxReplaced, reachable: o.Reachable,
	}
	nodes := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, node *corev1.Node) []reconcile.Request {
		return machinesOf(ctx, mgr.GetClient(), node)
	})
	b := builder.ControllerManagedBy(mgr).Named("machine").
		// The status is our own writing.
		For(&machinev1alpha1.Machine{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionStarted(),
		))).
		// A class that was mended makes the machines that could not be made before.
		Watches(&machinev1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, class client.Object) []reconcile.Request {
			return unmadeOf(ctx, mgr.GetClient(), class)
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(target.GetCache(), &corev1.Node{}, nodes, nodeChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency, ReconciliationTimeout: passTimeout,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
	if notifier, ok := o.Driver.(driver.Notifier); ok {
		b = b.WatchesRawSource(notifier.Changes(&handler.EnqueueRequestForObject{}))
	}
	return b.Complete(r)
}

// deletionStarted lets pass that an object is being deleted, which changes neither labels nor annotations.
func deletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	}}
}

// unmadeOf leads from a class to its machines that the infrastructure has not made yet.
func unmadeOf(ctx context.Context, c client.Reader, class client.Object) []reconcile.Request {
	machines := &machinev1alpha1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(class.GetNamespace())); err != nil {
		return nil // a cache that has not started; every machine is looked at when it has
	}
	var requests []reconcile.Request
	for i := range machines.Items {
		if machine := &machines.Items[i]; machine.Spec.Class.Name == class.GetName() && machine.Spec.ProviderID == "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(machine)})
		}
	}
	return requests
}

// machinesOf leads from a Node to its machine, or to those that have not joined yet, any of which it may be.
func machinesOf(ctx context.Context, c client.Reader, node *corev1.Node) []reconcile.Request {
	machines := &machinev1alpha1.MachineList{}
	if err := c.List(ctx, machines); err != nil {
		return nil // a cache that has not started; every machine is looked at when it has
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

// nodeChanged lets pass what may change a verdict. Heartbeats, which are most of what a kubelet writes, do not.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return !sameConditions(before.Status.Conditions, after.Status.Conditions) ||
				!apiequality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses) ||
				!apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
				!apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
				!apiequality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
		},
	}
}
