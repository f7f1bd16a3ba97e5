package machinedeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

// In an update in place, machines stay. Nodes of old sets are marked as candidates, and selected for their update: by this controller, a few at a time,
// or by the user. The controller of Machines drains them, and the gardener-node-agent updates them. Then the Machine moves to the current set.

func inPlace(d *machinev1alpha1.MachineDeployment) bool {
	return d.Spec.Strategy.Type == machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType
}

func manual(d *machinev1alpha1.MachineDeployment) bool {
	update := d.Spec.Strategy.InPlaceUpdate
	return inPlace(d) && update != nil && update.OrchestrationType == machinev1alpha1.OrchestrationTypeManual
}

// rolls reports whether machines are brought to the template of a deployment.
func rolls(d *machinev1alpha1.MachineDeployment) bool {
	return !d.Spec.Paused && d.Labels[machinev1alpha1.FreezeLabel] != machinev1alpha1.LabelValueTrue
}

// owned counts the machines of each set, by its UID, without those that are deleted or have failed.
func owned(machines []machinev1alpha1.Machine) map[string]int32 {
	out := map[string]int32{}
	for i := range machines {
		machine := &machines[i]
		owner := metav1.GetControllerOf(machine)
		if owner != nil && machine.DeletionTimestamp == nil && machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed {
			out[string(owner.UID)]++
		}
	}
	return out
}

// scaleInPlace returns the replicas of each set, by name: machines that have moved count for the current set, and so do replacements of lost ones and
// surplus ones at the start. Old sets never grow. When the current set is complete, what is left in old sets is surplus.
func scaleInPlace(in input, owned map[string]int32) map[string]int32 {
	out := map[string]int32{}
	old, desired := int32(0), in.deployment.Spec.Replicas
	for _, set := range in.old {
		out[set.Name] = min(set.Spec.Replicas, owned[string(set.UID)])
		old += out[set.Name]
	}
	have := owned[string(in.current.UID)]
	current := max(min(have, desired), min(desired, desired+in.surge-old))
	out[in.current.Name] = current
	excess := max(0, current+old-desired-in.surge)
	if have >= desired && available(in.current) >= desired {
		excess = old
	}
	for _, set := range in.old {
		n := min(excess, out[set.Name])
		out[set.Name] -= n
		excess -= n
	}
	return out
}

// member is a machine of a deployment with its Node.
type member struct {
	machine *machinev1alpha1.Machine
	node    *corev1.Node
	// old is whether it is in an old set, or was taken back.
	old bool
}

func (m member) selected() bool {
	return m.node.Labels[machinev1alpha1.NodeSelectedForUpdate] == "true"
}

// selectNodes returns the names of the Nodes that are to be updated next, cordoned ones first, in the order of their machines: as many as may be unavailable,
// where those that were selected before count, and those that are unavailable for another reason, such as a failed update.
func selectNodes(in input, members []member) []string {
	if manual(in.deployment) || !rolls(in.deployment) {
		return nil
	}
	working, missing := int32(0), in.deployment.Spec.Replicas
	var idle []member
	for _, m := range members {
		if !m.old && m.machine.DeletionTimestamp == nil {
			missing--
		}
		if m.machine.DeletionTimestamp != nil || m.machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineRunning || m.old && m.selected() {
			continue
		}
		working++
		if m.old {
			idle = append(idle, m)
		}
	}
	for _, m := range members {
		if m.old && m.selected() {
			missing-- // it will be in the current set
		}
	}
	room := min(working-(in.deployment.Spec.Replicas-in.unavailable), missing)
	var names []string
	slices.SortFunc(idle, func(a, b member) int {
		switch cordoned := a.node.Spec.Unschedulable; {
		case cordoned == b.node.Spec.Unschedulable:
			return cmp.Compare(a.machine.Name, b.machine.Name)
		case cordoned: // it takes no pods, and may be drained already
			return -1
		}
		return 1
	})
	for _, m := range idle[:max(0, min(int(room), len(idle)))] {
		names = append(names, m.node.Name)
	}
	return names
}

// targetAnnotation on a Node is the name of the MachineSet whose template its machine is updated to. A Node that was marked by an earlier version has none.
const targetAnnotation = "node.machine.sapcloud.io/update-target"

// isFor reports whether what a Node has for its update is about a set.
func isFor(node *corev1.Node, set string) bool {
	target, named := node.Annotations[targetAnnotation]
	return !named || target == set
}

func isUpdated(node *corev1.Node) bool {
	return node.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateSuccessful
}

// begun reports whether the gardener-node-agent may have begun the update of a Node. What it reports may be about the template from when it began.
func begun(node *corev1.Node) bool {
	return node.Labels[machinev1alpha1.NodeUpdateResult] != "" || slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == machinev1alpha1.NodeInPlaceUpdate && (c.Reason == machinev1alpha1.ReadyForUpdate || c.Reason == machinev1alpha1.UpdateFailed)
	})
}

// takenBack reports whether the gardener-node-agent may have begun to update a Node, whose machine is in the current set, to the template of another one:
// the change of the pool was taken back meanwhile, so the machine has to be updated to what it had.
func takenBack(node *corev1.Node, current string) bool {
	return node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true" && begun(node) && !isFor(node, current)
}

// candidate returns the Node of a candidate for the template of a set, with its labels, annotations and taint. The result of an earlier update does not
// count: a Node that was updated to the template of another set is a candidate once more.
func candidate(before *corev1.Node, selected bool, set string) *corev1.Node {
	if isUpdated(before) && !isFor(before, set) {
		before = unmark(before)
	}
	node := withTaint(before, true)
	if node.Labels[machinev1alpha1.NodeCandidateForUpdate] != "true" {
		delete(node.Labels, machinev1alpha1.NodeUpdateResult)
		delete(node.Annotations, machinev1alpha1.MachineUpdateFailedReason)
	}
	if !begun(node) {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, targetAnnotation, set)
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, machinev1alpha1.NodeCandidateForUpdate, "true")
	if selected {
		metav1.SetMetaDataLabel(&node.ObjectMeta, machinev1alpha1.NodeSelectedForUpdate, "true")
	}
	if _, ofUser := node.Annotations[machinev1alpha1.ScaleDownDisabled]; !ofUser {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.ScaleDownDisabled, "true")
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.ScaleDownDisabledByMCM, "true")
	}
	return node
}

// unmark returns a Node that needs no update any more. If it was drained, pods are scheduled to it again; after an update, as soon as its critical
// components are ready.
func unmark(before *corev1.Node) *corev1.Node {
	node := withTaint(before, false)
	updated := isUpdated(node)
	if node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true" && (updated || node.Labels[machinev1alpha1.NodeSelectedForUpdate] == "true") {
		node.Spec.Unschedulable = false
		critical := corev1.Taint{Key: constants.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}
		if updated && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&critical) }) {
			node.Spec.Taints = append(node.Spec.Taints, critical)
		}
	}
	for _, label := range []string{machinev1alpha1.NodeCandidateForUpdate, machinev1alpha1.NodeSelectedForUpdate, machinev1alpha1.NodeUpdateResult} {
		delete(node.Labels, label)
	}
	delete(node.Annotations, machinev1alpha1.MachineUpdateFailedReason)
	delete(node.Annotations, targetAnnotation)
	// A Node whose machine is kept for inspection has them, too.
	kept := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == machinev1alpha1.NodePreserved && c.Status == corev1.ConditionTrue
	})
	if _, own := node.Annotations[machinev1alpha1.ScaleDownDisabledByMCM]; own && !kept {
		delete(node.Annotations, machinev1alpha1.ScaleDownDisabledByMCM)
		delete(node.Annotations, machinev1alpha1.ScaleDownDisabled)
	}
	return node
}

// moved returns a machine as one of a set: its owner, labels and class are those of the set. Until the set's replicas count it, it has a label.
func moved(before *machinev1alpha1.Machine, to *machinev1alpha1.MachineSet) *machinev1alpha1.Machine {
	machine := before.DeepCopy()
	machine.OwnerReferences = slices.DeleteFunc(machine.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
	machine.OwnerReferences = append(machine.OwnerReferences, *metav1.NewControllerRef(to, machinev1alpha1.SchemeGroupVersion.WithKind("MachineSet")))
	maps.Copy(machine.Labels, to.Spec.Template.ObjectMeta.Labels)
	machine.Labels[machinev1alpha1.NodeUpdateResult] = machinev1alpha1.NodeUpdateSuccessful
	machine.Spec.Class = to.Spec.Template.Spec.Class
	return machine
}

// moveUpdated moves the machines of old sets that were updated to the current set. It changes them in the given list too. One that was updated to another
// template stays where it is, and is updated once more. It reads Nodes from the API server: the result of an earlier update must not count.
func (r *reconciler) moveUpdated(ctx context.Context, in *input, machines []machinev1alpha1.Machine) error {
	var errs []error
	for i := range machines {
		machine := &machines[i]
		if machine.DeletionTimestamp != nil || machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineInPlaceUpdateSuccessful || !ofSets(in.old, machine) {
			continue
		}
		node := &corev1.Node{}
		if err := r.targetAPI.Get(ctx, client.ObjectKey{Name: machine.Labels[machinev1alpha1.NodeLabelKey]}, node); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("read the Node of Machine %s: %w", machine.Name, err))
			continue
		}
		if !isUpdated(node) || !isFor(node, in.current.Name) {
			continue
		}
		logf.FromContext(ctx).Info("Moving machine, which was updated", "machine", machine.Name, "machineSet", in.current.Name)
		after := moved(machine, in.current)
		if err := r.controlCache.Patch(ctx, after, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
			errs = append(errs, fmt.Errorf("move Machine %s to MachineSet %s: %w", machine.Name, in.current.Name, err))
			continue
		}
		r.events.Eventf(in.deployment, after, corev1.EventTypeNormal, "UpdatedMachine", "Update", "Machine %s was updated", machine.Name)
		*machine = *after
	}
	in.oldMachines = countOf(in.old, machines)
	return errors.Join(errs...)
}

// settle removes the label of machines that have moved, as the replicas of their set count them by now.
func (r *reconciler) settle(ctx context.Context, in input, machines []machinev1alpha1.Machine) error {
	var errs []error
	for i := range machines {
		if !machineset.IsMoving(&machines[i]) || !ofSets([]*machinev1alpha1.MachineSet{in.current}, &machines[i]) {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(kube.PatchMetadata(ctx, r.controlCache, &machines[i], func(o *metav1.PartialObjectMetadata) {
			delete(o.Labels, machinev1alpha1.NodeUpdateResult)
		})))
	}
	return errors.Join(errs...)
}

// ofSets reports whether a machine is in one of some sets.
func ofSets(sets []*machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine) bool {
	owner := metav1.GetControllerOf(machine)
	return owner != nil && slices.ContainsFunc(sets, func(s *machinev1alpha1.MachineSet) bool { return s.UID == owner.UID })
}

// markForUpdate marks the Nodes of machines in old sets and of those that were taken back, selects those that are updated next, and unmarks the
// others. It reads Nodes from the API server: which were selected a moment ago must count.
func (r *reconciler) markForUpdate(ctx context.Context, in input, machines []machinev1alpha1.Machine) error {
	var members []member
	for i := range machines {
		machine := &machines[i]
		name, old := machine.Labels[machinev1alpha1.NodeLabelKey], ofSets(in.old, machine)
		if name == "" || !old && !ofSets([]*machinev1alpha1.MachineSet{in.current}, machine) {
			continue
		}
		node := &corev1.Node{}
		reader := client.Reader(r.targetCache)
		if len(in.old) > 0 {
			reader = r.targetAPI
		}
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, node); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Node %s: %w", name, err)
		} else if err == nil {
			members = append(members, member{machine: machine, node: node, old: old || takenBack(node, in.current.Name)})
		}
	}
	selected := selectNodes(in, members)
	var errs []error
	for _, m := range members {
		desired := unmark(m.node)
		if m.old {
			if !rolls(in.deployment) {
				continue // neither begun nor undone
			}
			desired = candidate(m.node, slices.Contains(selected, m.node.Name), in.current.Name)
		}
		errs = append(errs, r.patchNode(ctx, m.node, desired))
	}
	if len(selected) > 0 {
		logf.FromContext(ctx).Info("Selected nodes for their update", "nodes", strings.Join(selected, ", "))
	}
	return errors.Join(errs...)
}

// patchNode writes a Node, if it differs, with a lock, as taints are a list.
func (r *reconciler) patchNode(ctx context.Context, before, desired *corev1.Node) error {
	if apiequality.Semantic.DeepEqual(before, desired) {
		return nil
	}
	err := r.targetCache.Patch(ctx, desired, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark Node %s: %w", before.Name, err)
	}
	return nil
}

// failedUpdates describes the machines that could not be updated, empty if there are none.
func failedUpdates(machines []machinev1alpha1.MachineSummary) string {
	var texts []string
	for _, machine := range machines {
		if machine.LastOperation.Type == machinev1alpha1.MachineOperationInPlaceUpdate {
			texts = append(texts, fmt.Sprintf("Machine %s: %s", machine.Name, machine.LastOperation.Description))
		}
	}
	return strings.Join(texts, "; ")
}
