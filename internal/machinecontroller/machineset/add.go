// Package machineset keeps the number of machines that MachineSets ask for. Failed machines are deleted, and replaced by new ones.
//
// It reads and writes MachineSets and Machines, both in the control cluster. Decisions are made about what
// the API server says, not the cache: a machine too many costs money, and one too few work.
package machineset

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// passTimeout limits a pass, which creates no more than a burst of machines.
const passTimeout = 2 * time.Minute

// Options are what the controller needs to know.
type Options struct {
	// Burst is how many machines a set creates or deletes at a time.
	Burst int
	// SafetyUp is how many machines too many freeze a set, SafetyDown how many it may have when it is not frozen any more.
	SafetyUp, SafetyDown int
	// Concurrency is how many sets are worked on at a time.
	Concurrency int
	// Clock is the time.
	Clock clock.PassiveClock
}

// Add adds the controller.
func Add(mgr manager.Manager, o Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), events: mgr.GetEventRecorder("machine-controller-manager"),
		clock: o.Clock, burst: o.Burst, up: o.SafetyUp, down: o.SafetyDown,
	}
	return builder.ControllerManagedBy(mgr).Named("machineset").
		// The status is our own writing. A label may freeze the set, and an annotation take it off.
		For(&machinev1alpha1.MachineSet{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		// All changes: phases are counted, and labels and priorities matter.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, machine client.Object) []reconcile.Request {
			return setsOf(ctx, mgr.GetClient(), machine)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// setsOf leads from a machine to its set, or to those that may adopt it.
func setsOf(ctx context.Context, c client.Reader, machine client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		if owner.Kind != "MachineSet" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}}}
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := c.List(ctx, sets, client.InNamespace(machine.GetNamespace())); err != nil {
		return nil // a cache that has not started; every set is looked at when it has
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		selector, err := metav1.LabelSelectorAsSelector(sets.Items[i].Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(machine.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
