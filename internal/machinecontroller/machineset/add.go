// Package machineset creates and deletes Machines to match the replicas of MachineSets. Failed Machines are replaced.
//
// It reads and writes MachineSets and Machines, both in the control cluster. It reads them from the API server, not from the cache, so that a
// Machine that has just been created or deleted counts.
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
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
)

// passTimeout limits a pass, which creates no more than a burst of machines.
const passTimeout = 2 * time.Minute

// Values configure the controller.
type Values struct {
	// Burst is how many machines a set creates or deletes at a time.
	Burst int
	// SafetyUp is the surplus of machines that freezes a set, SafetyDown the one up to which it is not frozen any more.
	SafetyUp, SafetyDown int
	// ConcurrentSyncs is how many sets are reconciled at a time.
	ConcurrentSyncs int
	// Clock has the time for conditions.
	Clock clock.PassiveClock
}

// Add adds the controller.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{
		controlCache: mgr.GetClient(), controlAPI: mgr.GetAPIReader(), events: mgr.GetEventRecorder(machinecontrollermanager.Name),
		clock: v.Clock, burst: v.Burst, up: v.SafetyUp, down: v.SafetyDown,
	}
	return builder.ControllerManagedBy(mgr).Named("machineset").
		// Only this controller writes the status. A label freezes the set, and an annotation removes the label.
		For(&machinev1alpha1.MachineSet{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		))).
		// All changes, as phases, labels and priorities matter.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, machine client.Object) []reconcile.Request {
			return setsOf(ctx, mgr.GetClient(), machine)
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// setsOf maps a Machine to its set, or to those that may adopt it.
func setsOf(ctx context.Context, c client.Reader, machine client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		if owner.Kind != "MachineSet" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}}}
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := c.List(ctx, sets, client.InNamespace(machine.GetNamespace())); err != nil {
		return nil // the cache has not started; each set is reconciled when it has
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
