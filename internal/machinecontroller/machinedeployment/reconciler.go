package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

// reconciler reconciles MachineDeployments.
type reconciler struct {
	controlCache client.Client
	controlAPI   client.Reader // so that the scale of a set that was changed a moment ago counts
	targetCache  client.Client
	targetAPI    client.Reader
	events       events.EventRecorder
	clock        clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	deployment := &machinev1alpha1.MachineDeployment{}
	if err := r.controlAPI.Get(ctx, request.NamespacedName, deployment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	after, err := r.reconcile(ctx, deployment)
	if err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

func (r *reconciler) reconcile(ctx context.Context, d *machinev1alpha1.MachineDeployment) (time.Duration, error) {
	sets, err := r.setsOf(ctx, d)
	if err != nil {
		return 0, err
	}
	if d.DeletionTimestamp != nil {
		return 0, r.delete(ctx, d, sets)
	}
	if d.Annotations[machinev1alpha1.UnfreezeAnnotation] == machinev1alpha1.LabelValueTrue {
		// The change requeues it.
		return 0, kube.PatchMetadata(ctx, r.controlCache, d, func(o *metav1.PartialObjectMetadata) { machineset.Unfreeze(&o.ObjectMeta) })
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return 0, reconcile.TerminalError(fmt.Errorf("spec.selector of MachineDeployment %s: %w", d.Name, err))
	}
	if selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.ObjectMeta.Labels)) {
		return 0, reconcile.TerminalError(fmt.Errorf("MachineDeployment %s: spec.selector does not match the labels of spec.template", d.Name))
	}
	in := input{deployment: d}
	if in.surge, in.unavailable, err = bounds(d); err != nil {
		return 0, reconcile.TerminalError(fmt.Errorf("MachineDeployment %s: spec.strategy: %w", d.Name, err))
	}
	if err := kube.AddFinalizer(ctx, r.controlCache, d, machinev1alpha1.MCMFinalizerName); err != nil {
		return 0, err
	}
	in.current, in.old = currentAndOld(d, sets)
	if d.Spec.RollbackTo != nil {
		return 0, r.rollBack(ctx, d, in.current, in.old)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := r.controlAPI.List(ctx, machines, client.InNamespace(d.Namespace)); err != nil {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	if err := r.markTriggered(ctx, d, machines.Items); err != nil {
		return 0, err
	}
	in.oldMachines = countOf(in.old, machines.Items)
	failure := r.act(ctx, &in, machines.Items)
	if failure != nil && kube.Routine(failure) {
		return 0, failure
	}
	failure = errors.Join(failure, r.markNodes(ctx, in, machines.Items))
	recheck, err := r.report(ctx, in, failure)
	return recheck, errors.Join(failure, err)
}

// setsOf reads the sets of a deployment.
func (r *reconciler) setsOf(ctx context.Context, d *machinev1alpha1.MachineDeployment) ([]*machinev1alpha1.MachineSet, error) {
	list := &machinev1alpha1.MachineSetList{}
	if err := r.controlAPI.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	var sets []*machinev1alpha1.MachineSet
	for i := range list.Items {
		set := &list.Items[i]
		owner := metav1.GetControllerOf(set)
		switch {
		case owner != nil && owner.UID == d.UID:
			sets = append(sets, set)
		case owner == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels)) && d.DeletionTimestamp == nil && set.DeletionTimestamp == nil:
			// Its deployment was deleted without its sets, such as by a migration.
			err := kube.PatchMetadata(ctx, r.controlCache, set, func(o *metav1.PartialObjectMetadata) {
				o.OwnerReferences = append(o.OwnerReferences, *metav1.NewControllerRef(d, machinev1alpha1.SchemeGroupVersion.WithKind("MachineDeployment")))
			})
			if err != nil {
				return nil, fmt.Errorf("adopt MachineSet %s: %w", set.Name, err)
			}
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// markTriggered gives machines that the annotation of a deployment lists the lowest priority, before its sets shrink, and removes from the list
// those that are deleted anyway. The cluster-autoscaler writes the list together with the number of replicas.
func (r *reconciler) markTriggered(ctx context.Context, d *machinev1alpha1.MachineDeployment, machines []machinev1alpha1.Machine) error {
	list, ok := d.Annotations[machinev1alpha1.TriggerDeletionByMCM]
	if !ok {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("spec.selector of MachineDeployment %s: %w", d.Name, err))
	}
	kept, marks := triggered(list, selector, machines)
	for _, mark := range marks {
		logf.FromContext(ctx).Info("Marking machine for deletion", "machine", mark.machine.Name)
		err := kube.PatchMetadata(ctx, r.controlCache, mark.machine, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, machinev1alpha1.MachinePriority, "1")
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, machinev1alpha1.MarkedForDeletionTime, mark.at)
		})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("mark Machine %s for deletion: %w", mark.machine.Name, err)
		}
	}
	if kept == list {
		return nil
	}
	// With the list as it was read: the cluster-autoscaler may have added a machine meanwhile.
	changed := d.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, machinev1alpha1.TriggerDeletionByMCM, kept)
	if kept == "" {
		delete(changed.Annotations, machinev1alpha1.TriggerDeletionByMCM)
	}
	if err := r.controlCache.Patch(ctx, changed, client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update the list of machines to delete of MachineDeployment %s: %w", d.Name, err)
	}
	changed.DeepCopyInto(d)
	return nil
}

// countOf counts the machines of some sets.
func countOf(sets []*machinev1alpha1.MachineSet, machines []machinev1alpha1.Machine) int {
	count := 0
	for i := range machines {
		if owner := metav1.GetControllerOf(&machines[i]); owner != nil {
			if slices.ContainsFunc(sets, func(s *machinev1alpha1.MachineSet) bool { return s.UID == owner.UID }) {
				count++
			}
		}
	}
	return count
}

// delete deletes the sets of a deployment that is being deleted, and removes its finalizer when they are deleted.
func (r *reconciler) delete(ctx context.Context, d *machinev1alpha1.MachineDeployment, sets []*machinev1alpha1.MachineSet) error {
	if !controllerutil.ContainsFinalizer(d, machinev1alpha1.MCMFinalizerName) {
		return nil
	}
	if len(sets) == 0 {
		return kube.RemoveFinalizer(ctx, r.controlCache, d, machinev1alpha1.MCMFinalizerName)
	}
	var errs []error
	for _, set := range sets {
		if set.DeletionTimestamp == nil {
			errs = append(errs, r.deleteSet(ctx, set))
		}
	}
	return errors.Join(errs...)
}

func (r *reconciler) deleteSet(ctx context.Context, set *machinev1alpha1.MachineSet) error {
	logf.FromContext(ctx).Info("Deleting machine set", "machineSet", set.Name)
	if err := r.controlCache.Delete(ctx, set, client.Preconditions{UID: &set.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete MachineSet %s: %w", set.Name, err)
	}
	return nil
}

// rollBack writes an older template to the deployment, which the next pass rolls out.
func (r *reconciler) rollBack(ctx context.Context, d *machinev1alpha1.MachineDeployment, current *machinev1alpha1.MachineSet, old []*machinev1alpha1.MachineSet) error {
	template := rollbackTemplate(d, current, old)
	to := d.Spec.RollbackTo.Revision
	changed := d.DeepCopy()
	changed.Spec.RollbackTo = nil
	if template != nil {
		changed.Spec.Template = *template
	}
	if err := r.controlCache.Patch(ctx, changed, client.MergeFrom(d)); err != nil {
		return fmt.Errorf("roll MachineDeployment %s back: %w", d.Name, err)
	}
	if template == nil {
		r.events.Eventf(d, nil, corev1.EventTypeWarning, "RollbackRevisionNotFound", "Rollback", "Revision %d does not exist", to)
	} else {
		r.events.Eventf(d, nil, corev1.EventTypeNormal, "Rollback", "Rollback", "Rolling back to revision %d", to)
	}
	return nil
}

// act creates the current set, applies changes that do not need new machines to all sets, scales them, and deletes those that are too old.
func (r *reconciler) act(ctx context.Context, in *input, machines []machinev1alpha1.Machine) error {
	d := in.deployment
	if in.current == nil {
		if d.Spec.Paused && len(in.old) > 0 {
			return r.scalePaused(ctx, in)
		}
		if err := r.create(ctx, in); err != nil {
			return err
		}
	}
	updates := inPlace(d) && rolls(d)
	replicas := scale(*in)
	var unmoved error
	if updates {
		unmoved = r.moveUpdated(ctx, in, machines) // sets are scaled also while the Nodes cannot be read
		replicas = scaleInPlace(*in, owned(machines))
	}
	number := strconv.FormatInt(nextRevision(in.current, in.old), 10)
	for i, set := range append([]*machinev1alpha1.MachineSet{in.current}, in.old...) {
		desired := withTemplate(d, set, i == 0)
		desired.Spec.Replicas = replicas[set.Name]
		if i == 0 {
			metav1.SetMetaDataAnnotation(&desired.ObjectMeta, machineset.RevisionAnnotation, number)
		}
		// Machines that an old set loses are replaced by ones of the current set.
		if i > 0 && updates {
			metav1.SetMetaDataLabel(&desired.ObjectMeta, machinev1alpha1.MachineSetScaleUpDisabled, "true")
		} else {
			delete(desired.Labels, machinev1alpha1.MachineSetScaleUpDisabled)
		}
		if err := r.patchSet(ctx, d, set, desired); err != nil {
			return err
		}
	}
	for _, set := range expired(d, in.old) {
		if err := r.deleteSet(ctx, set); err != nil {
			return err
		}
	}
	if updates {
		return errors.Join(unmoved, r.settle(ctx, *in, machines))
	}
	return nil
}

// scalePaused scales the newest set, whatever its template.
func (r *reconciler) scalePaused(ctx context.Context, in *input) error {
	newest := in.old[len(in.old)-1]
	paused := in.deployment.DeepCopy()
	paused.Spec.Paused = true
	replicas := scale(input{deployment: paused, current: newest, old: in.old[:len(in.old)-1]})
	for _, set := range in.old {
		desired := withTemplate(in.deployment, set, false)
		desired.Spec.Replicas = replicas[set.Name]
		if err := r.patchSet(ctx, in.deployment, set, desired); err != nil {
			return err
		}
	}
	return nil
}

// create creates the current set. If a set of its name exists, which is that of another template, the next pass uses another name.
func (r *reconciler) create(ctx context.Context, in *input) error {
	d := in.deployment
	set, err := newSet(d, nextRevision(nil, in.old))
	if err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Creating machine set", "machineSet", set.Name)
	err = r.controlCache.Create(ctx, set)
	if apierrors.IsAlreadyExists(err) {
		changed := d.DeepCopy()
		changed.Status.CollisionCount = new(ptr.Deref(d.Status.CollisionCount, 0) + 1)
		if err := r.controlCache.Status().Patch(ctx, changed, client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("count a name collision: %w", err)
		}
		return err // routine: the next pass uses another name
	}
	if err != nil {
		return fmt.Errorf("create MachineSet %s: %w", set.Name, err)
	}
	r.events.Eventf(d, set, corev1.EventTypeNormal, "CreatedMachineSet", "Create", "Created machine set %s", set.Name)
	in.current = set
	return nil
}

func (r *reconciler) patchSet(ctx context.Context, d *machinev1alpha1.MachineDeployment, set, desired *machinev1alpha1.MachineSet) error {
	if apiequality.Semantic.DeepEqual(set, desired) {
		return nil
	}
	before, from := set.DeepCopy(), set.Spec.Replicas
	desired.DeepCopyInto(set)
	if err := r.controlCache.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update MachineSet %s: %w", set.Name, err)
	}
	if from != set.Spec.Replicas {
		logf.FromContext(ctx).Info("Scaled machine set", "machineSet", set.Name, "from", from, "to", set.Spec.Replicas)
		r.events.Eventf(d, set, corev1.EventTypeNormal, "ScalingMachineSet", "Scale", "Scaled machine set %s from %d to %d", set.Name, from, set.Spec.Replicas)
	}
	return nil
}

// markNodes taints the Nodes that will be replaced, so that the scheduler prefers others, and pods move only once.
func (r *reconciler) markNodes(ctx context.Context, in input, machines []machinev1alpha1.Machine) error {
	if in.current == nil {
		return nil
	}
	if inPlace(in.deployment) {
		return r.markForUpdate(ctx, in, machines)
	}
	var errs []error
	for i := range machines {
		owner, name := metav1.GetControllerOf(&machines[i]), machines[i].Labels[machinev1alpha1.NodeLabelKey]
		if owner == nil || name == "" {
			continue
		}
		old := slices.ContainsFunc(in.old, func(s *machinev1alpha1.MachineSet) bool { return s.UID == owner.UID })
		if !old && owner.UID != in.current.UID {
			continue
		}
		errs = append(errs, r.markNode(ctx, name, old && !in.deployment.Spec.Paused))
	}
	return errors.Join(errs...)
}

func (r *reconciler) markNode(ctx context.Context, name string, marked bool) error {
	before := &corev1.Node{}
	if err := r.targetCache.Get(ctx, client.ObjectKey{Name: name}, before); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.patchNode(ctx, before, withTaint(before, marked))
}

// withTaint returns a Node with or without the taint of Nodes that will be replaced or updated.
func withTaint(before *corev1.Node, tainted bool) *corev1.Node {
	node := before.DeepCopy()
	taint := corev1.Taint{Key: machinev1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	isMark := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
	if !tainted {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isMark)
	} else if !slices.ContainsFunc(node.Spec.Taints, isMark) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
	return node
}

// report writes the status, if it differs.
func (r *reconciler) report(ctx context.Context, in input, failure error) (time.Duration, error) {
	if failure != nil && kube.Routine(failure) {
		return 0, nil
	}
	desired, recheck := status(in, failure, r.clock.Now())
	if apiequality.Semantic.DeepEqual(in.deployment.Status, desired) {
		return recheck, nil
	}
	changed := in.deployment.DeepCopy()
	changed.Status = desired
	if err := r.controlCache.Status().Patch(ctx, changed, client.MergeFrom(in.deployment)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write the status of MachineDeployment %s: %w", in.deployment.Name, err)
	}
	return recheck, nil
}
