package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// reconciler reconciles MachineSets.
type reconciler struct {
	controlCache client.Client
	controlAPI   client.Reader // so that Machines that were created a moment ago count
	events       events.EventRecorder
	clock        clock.PassiveClock
	burst        int
	up, down     int
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &machinev1alpha1.MachineSet{}
	if err := r.controlAPI.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	recheck, err := r.reconcile(ctx, set)
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// reconcile returns the delay until the first machine is not kept any more; 0 if none is.
func (r *reconciler) reconcile(ctx context.Context, set *machinev1alpha1.MachineSet) (time.Duration, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return 0, reconcile.TerminalError(fmt.Errorf("spec.selector of MachineSet %s: %w", set.Name, err))
	}
	if selector.Empty() || !selector.Matches(labels.Set(set.Spec.Template.ObjectMeta.Labels)) {
		return 0, reconcile.TerminalError(fmt.Errorf("MachineSet %s: spec.selector does not match the labels of spec.template", set.Name))
	}
	machines := &machinev1alpha1.MachineList{}
	if err := r.controlAPI.List(ctx, machines, client.InNamespace(set.Namespace)); err != nil {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	claimed := claim(set, selector, machines.Items)
	if set.DeletionTimestamp != nil {
		return 0, r.delete(ctx, set, claimed.owned)
	}
	if err := r.own(ctx, set, &claimed); err != nil {
		return 0, err
	}
	rolling, err := r.rolls(ctx, set, claimed.owned)
	if err != nil {
		return 0, err
	}
	todo := decide(set, claimed.owned, r.burst, rolling, r.clock.Now())
	frozen := freeze(set, remaining(set, selector, machines.Items, todo), r.up, r.down)
	if frozen.reason != "" {
		todo.create = 0
	} else if err := kube.PatchMetadata(ctx, r.controlCache, set, func(o *metav1.PartialObjectMetadata) { Unfreeze(&o.ObjectMeta) }); err != nil {
		return 0, err
	}
	if todo.create+len(todo.delete) > 0 {
		if err := r.unchanged(ctx, set); err != nil {
			return 0, err
		}
	}
	failure := errors.Join(r.act(ctx, set, todo), r.syncMachines(ctx, set, claimed.owned))
	if failure != nil && kube.Routine(failure) {
		return 0, failure
	}
	err = r.report(ctx, set, selector, frozen, failure, rolling)
	if err == nil && frozen.reason != "" {
		// After the condition, whose reason distinguishes this label from one that a user set.
		err = kube.PatchMetadata(ctx, r.controlCache, set, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataLabel(&o.ObjectMeta, machinev1alpha1.FreezeLabel, machinev1alpha1.LabelValueTrue)
		})
	}
	return todo.recheck, errors.Join(failure, err)
}

// rolls reports whether the machines of the set's deployment are being replaced. It matters only if there are machines that may be kept.
func (r *reconciler) rolls(ctx context.Context, set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine) (bool, error) {
	if !slices.ContainsFunc(machines, func(m *machinev1alpha1.Machine) bool {
		return m.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed || m.Status.CurrentStatus.PreserveExpiryTime != nil
	}) {
		return false, nil
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := r.controlAPI.List(ctx, sets, client.InNamespace(set.Namespace)); err != nil {
		return false, fmt.Errorf("list MachineSets: %w", err)
	}
	return rolls(set, sets.Items), nil
}

// unchanged returns a conflict if the replicas of a set, or whether it may grow, have changed since it was read: machines that were read later may have
// moved to it from another set, or from it.
func (r *reconciler) unchanged(ctx context.Context, set *machinev1alpha1.MachineSet) error {
	current := &machinev1alpha1.MachineSet{}
	if err := r.controlAPI.Get(ctx, client.ObjectKeyFromObject(set), current); err != nil {
		return err
	}
	const label = machinev1alpha1.MachineSetScaleUpDisabled
	if current.Generation == set.Generation && current.Labels[label] == set.Labels[label] {
		return nil
	}
	return apierrors.NewConflict(machinev1alpha1.SchemeGroupVersion.WithResource("machinesets").GroupResource(), set.Name, errors.New("its replicas have changed"))
}

// delete deletes the machines of a set that is being deleted, and removes its finalizer when they are deleted.
func (r *reconciler) delete(ctx context.Context, set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine) error {
	if !controllerutil.ContainsFinalizer(set, machinev1alpha1.MCMFinalizerName) {
		return nil
	}
	if len(machines) == 0 {
		return kube.RemoveFinalizer(ctx, r.controlCache, set, machinev1alpha1.MCMFinalizerName)
	}
	var errs []error
	for _, machine := range machines {
		if machine.DeletionTimestamp == nil {
			errs = append(errs, r.deleteMachine(ctx, set, machine, "its set is being deleted"))
		}
	}
	return errors.Join(errs...)
}

// own adds the finalizer of the set, and the owner references of its machines.
func (r *reconciler) own(ctx context.Context, set *machinev1alpha1.MachineSet, c *claims) error {
	if err := kube.AddFinalizer(ctx, r.controlCache, set, machinev1alpha1.MCMFinalizerName); err != nil {
		return err
	}
	for _, machine := range c.adopt {
		err := kube.PatchMetadata(ctx, r.controlCache, machine, func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = append(o.OwnerReferences, *ownerReference(set))
		})
		if err != nil {
			return fmt.Errorf("adopt Machine %s: %w", machine.Name, err)
		}
		c.owned = append(c.owned, machine)
	}
	for _, machine := range c.release {
		err := kube.PatchMetadata(ctx, r.controlCache, machine, func(o *metav1.PartialObjectMetadata) {
			var others []metav1.OwnerReference
			for _, owner := range o.OwnerReferences {
				if owner.UID != set.UID {
					others = append(others, owner)
				}
			}
			o.OwnerReferences = others
		})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release Machine %s: %w", machine.Name, err)
		}
	}
	return nil
}

// act creates, deletes and keeps machines.
func (r *reconciler) act(ctx context.Context, set *machinev1alpha1.MachineSet, p plan) error {
	var errs []error
	for _, machine := range p.preserve {
		errs = append(errs, r.preserve(ctx, set, machine))
	}
	for _, machine := range p.delete {
		reason := "there are more than desired"
		if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed {
			reason = "it has failed: " + machine.Status.LastOperation.Description
		}
		errs = append(errs, r.deleteMachine(ctx, set, machine, reason))
	}
	for range p.create {
		machine := newMachine(set)
		if err := r.controlCache.Create(ctx, machine); err != nil {
			// The others would most likely fail, too.
			errs = append(errs, fmt.Errorf("create a Machine: %w", err))
			break
		}
		logf.FromContext(ctx).Info("Created machine", "machine", machine.Name)
		r.events.Eventf(set, machine, corev1.EventTypeNormal, "SuccessfulCreate", "Scale", "Created machine %s", machine.Name)
	}
	return errors.Join(errs...)
}

func (r *reconciler) deleteMachine(ctx context.Context, set *machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine, reason string) error {
	logf.FromContext(ctx).Info("Deleting machine", "machine", machine.Name, "reason", reason)
	if err := r.controlCache.Delete(ctx, machine, client.Preconditions{UID: &machine.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Machine %s: %w", machine.Name, err)
	}
	r.events.Eventf(set, machine, corev1.EventTypeNormal, "SuccessfulDelete", "Scale", "Deleted machine %s, as %s", machine.Name, reason)
	return nil
}

// preserve marks a failed machine as one that is kept automatically. With a lock, as the user may have decided otherwise.
func (r *reconciler) preserve(ctx context.Context, set *machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine) error {
	logf.FromContext(ctx).Info("Keeping machine", "machine", machine.Name, "reason", machine.Status.LastOperation.Description)
	changed := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, machinev1alpha1.PreserveMachine, machinev1alpha1.PreserveAuto)
	if err := r.controlCache.Patch(ctx, changed, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("keep Machine %s: %w", machine.Name, err)
	}
	r.events.Eventf(set, changed, corev1.EventTypeNormal, "Preserved", "Preserve", "Keeping machine %s, which has failed: %s", machine.Name, machine.Status.LastOperation.Description)
	return nil
}

// syncMachines applies changes of the template that do not need new machines.
func (r *reconciler) syncMachines(ctx context.Context, set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine) error {
	var errs []error
	for _, machine := range machines {
		desired := toTemplate(set, machine)
		if machine.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(machine.Spec, desired.Spec) {
			continue
		}
		if err := r.controlCache.Patch(ctx, desired, client.MergeFrom(machine)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("apply the template to Machine %s: %w", machine.Name, err))
		}
	}
	return errors.Join(errs...)
}

// report counts the current machines, and writes the status if it differs.
func (r *reconciler) report(ctx context.Context, set *machinev1alpha1.MachineSet, selector labels.Selector, frozen freezing, failure error, rolls bool) error {
	machines := &machinev1alpha1.MachineList{}
	if err := r.controlAPI.List(ctx, machines, client.InNamespace(set.Namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	desired := status(set, claim(set, selector, machines.Items).owned, frozen, failure, rolls, r.clock.Now())
	if apiequality.Semantic.DeepEqual(set.Status, desired) {
		return nil
	}
	changed := set.DeepCopy()
	changed.Status = desired
	if err := r.controlCache.Status().Patch(ctx, changed, client.MergeFrom(set)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of MachineSet %s: %w", set.Name, err)
	}
	return nil
}
