package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// defaultPriority is the priority of machines without the annotation.
const defaultPriority = 3

// claims are the machines that a set adopts, releases and owns.
type claims struct {
	adopt, release, owned []*machinev1alpha1.Machine
}

// claim selects the machines of a set. Those of other owners are ignored.
func claim(set *machinev1alpha1.MachineSet, selector labels.Selector, machines []machinev1alpha1.Machine) claims {
	var c claims
	for i := range machines {
		machine := &machines[i]
		matches := selector.Matches(labels.Set(machine.Labels))
		owner := metav1.GetControllerOf(machine)
		switch {
		case owner != nil && owner.UID == set.UID && (matches || machine.DeletionTimestamp != nil):
			c.owned = append(c.owned, machine)
		case owner != nil && owner.UID == set.UID:
			c.release = append(c.release, machine)
		case owner == nil && matches && machine.DeletionTimestamp == nil && set.DeletionTimestamp == nil:
			c.adopt = append(c.adopt, machine)
		}
	}
	return c
}

// plan is which machines a set creates and deletes.
type plan struct {
	// create is how many machines are created now.
	create int
	// delete are the machines that are deleted now.
	delete []*machinev1alpha1.Machine
}

// decide compares the machines of a set with its replicas. Failed ones are deleted, and do not count. No more than burst machines are created
// or deleted at a time.
func decide(set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, burst int) plan {
	var p plan
	var active []*machinev1alpha1.Machine
	moving := 0
	for _, machine := range machines {
		switch {
		case machine.DeletionTimestamp != nil:
		case IsMoving(machine):
			moving++
		case machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed:
			p.delete = append(p.delete, machine)
		default:
			active = append(active, machine)
		}
	}
	if set.DeletionTimestamp != nil {
		return plan{}
	}
	// Replicas may count machines that are moving, or may not yet.
	switch missing := int(set.Spec.Replicas) - len(active); {
	case missing > moving && set.Labels[machinev1alpha1.MachineSetScaleUpDisabled] != "true":
		p.create = missing - moving
	case missing < 0:
		slices.SortFunc(active, goesFirst)
		p.delete = append(p.delete, active[:-missing]...)
	}
	p.create = min(p.create, burst)
	p.delete = p.delete[:min(len(p.delete), burst)]
	return p
}

// IsMoving reports whether a machine was updated in place and has just moved to its set, whose replicas may not count it yet.
func IsMoving(machine *machinev1alpha1.Machine) bool {
	return machine.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateSuccessful
}

// goesFirst compares machines by the order of their deletion: first by priority, then by usefulness, then the newest.
func goesFirst(a, b *machinev1alpha1.Machine) int {
	return cmp.Or(
		cmp.Compare(priority(a), priority(b)),
		cmp.Compare(usefulness(a), usefulness(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func priority(machine *machinev1alpha1.Machine) int {
	if value, err := strconv.Atoi(machine.Annotations[machinev1alpha1.MachinePriority]); err == nil {
		return value
	}
	return defaultPriority
}

// usefulness is higher for phases that are closer to Running.
func usefulness(machine *machinev1alpha1.Machine) int {
	return slices.Index([]machinev1alpha1.MachinePhase{
		machinev1alpha1.MachineTerminating, machinev1alpha1.MachineFailed, machinev1alpha1.MachineCrashLoopBackOff, machinev1alpha1.MachineUnknown,
		"", machinev1alpha1.MachinePending, machinev1alpha1.MachineAvailable, machinev1alpha1.MachineInPlaceUpdateFailed,
		machinev1alpha1.MachineInPlaceUpdating, machinev1alpha1.MachineInPlaceUpdateSuccessful, machinev1alpha1.MachineRunning,
	}, machine.Status.CurrentStatus.Phase)
}

// newMachine renders a machine from the template of a set. The server completes its name.
func newMachine(set *machinev1alpha1.MachineSet) *machinev1alpha1.Machine {
	template := set.Spec.Template.DeepCopy()
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, GenerateName: set.Name + "-",
			Labels: template.ObjectMeta.Labels, Annotations: template.ObjectMeta.Annotations,
			// Before the machine exists at the infrastructure.
			Finalizers:      []string{machinev1alpha1.MCMFinalizerName},
			OwnerReferences: []metav1.OwnerReference{*ownerReference(set)},
		},
		Spec: template.Spec,
	}
	if machine.Spec.Class.Name == "" {
		machine.Spec.Class = set.Spec.MachineClass
	}
	return machine
}

func ownerReference(set *machinev1alpha1.MachineSet) *metav1.OwnerReference {
	return metav1.NewControllerRef(set, machinev1alpha1.SchemeGroupVersion.WithKind("MachineSet"))
}

// toTemplate applies the part of the template that does not need a new machine: the node template and the timeouts.
func toTemplate(set *machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	desired := machine.DeepCopy()
	template := set.Spec.Template.Spec.DeepCopy()
	desired.Spec.NodeTemplate, desired.Spec.MachineConfiguration = template.NodeTemplate, template.MachineConfiguration
	return desired
}

// Reasons of the condition Frozen. A set that was frozen for a surplus is unfrozen when the surplus is gone; one that a user froze stays frozen.
const (
	reasonOvershoots = "OverShootingReplicaCount"
	// ReasonLabel is also used for MachineDeployments.
	ReasonLabel = "FrozenByLabel"
)

// freezing is why a set must not create machines, for its condition. An empty reason means that it may.
type freezing struct{ reason, message string }

// freeze decides whether a set is frozen: by the label of a user, or because it has so many machines, without those that are deleted, that there
// must be a fault, such as machines that lose their labels. Then it stays frozen until the surplus is gone.
func freeze(set *machinev1alpha1.MachineSet, machines, up, down int) freezing {
	frozen := set.Labels[machinev1alpha1.FreezeLabel] == machinev1alpha1.LabelValueTrue
	if frozen && set.Annotations[machinev1alpha1.UnfreezeAnnotation] == machinev1alpha1.LabelValueTrue {
		return freezing{}
	}
	overshot := slices.ContainsFunc(set.Status.Conditions, func(c machinev1alpha1.MachineSetCondition) bool {
		return c.Type == machinev1alpha1.MachineSetFrozen && c.Reason == reasonOvershoots
	})
	replicas := int(set.Spec.Replicas)
	switch {
	case frozen && !overshot:
		return freezing{ReasonLabel, "It has the label " + machinev1alpha1.FreezeLabel + "."}
	case machines > replicas+up, frozen && machines > replicas+down:
		return freezing{reasonOvershoots, fmt.Sprintf("There are %d machines, more than the desired %d.", machines, replicas)}
	}
	return freezing{}
}

// remaining counts the machines that a set owns or that match its selector, and that are not deleted.
func remaining(set *machinev1alpha1.MachineSet, selector labels.Selector, machines []machinev1alpha1.Machine, p plan) int {
	count := 0
	for i := range machines {
		machine := &machines[i]
		owner := metav1.GetControllerOf(machine)
		belongs := owner != nil && owner.UID == set.UID || owner == nil && selector.Matches(labels.Set(machine.Labels))
		if belongs && machine.DeletionTimestamp == nil && !IsMoving(machine) && !slices.Contains(p.delete, machine) {
			count++
		}
	}
	return count
}

// status counts machines. A machine is available as soon as its Node is healthy: extensions set minReadySeconds to minutes, and expect that
// it has no effect.
func status(set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, frozen freezing, failure error, now time.Time) machinev1alpha1.MachineSetStatus {
	out := *set.Status.DeepCopy()
	out.ObservedGeneration = set.Generation
	out.Replicas, out.FullyLabeledReplicas, out.ReadyReplicas, out.AvailableReplicas = 0, 0, 0, 0
	out.FailedMachines = nil
	templateLabels := labels.SelectorFromSet(set.Spec.Template.ObjectMeta.Labels)
	for _, machine := range machines {
		current := machine.Status.CurrentStatus
		if operation := machine.Status.LastOperation; operation.State == machinev1alpha1.MachineStateFailed {
			out.FailedMachines = append(out.FailedMachines, machinev1alpha1.MachineSummary{
				Name: machine.Name, ProviderID: machine.Spec.ProviderID, OwnerRef: set.Name, LastOperation: operation,
			})
		}
		if machine.DeletionTimestamp != nil || current.Phase == machinev1alpha1.MachineFailed {
			continue
		}
		out.Replicas++
		if templateLabels.Matches(labels.Set(machine.Labels)) {
			out.FullyLabeledReplicas++
		}
		if current.Phase == machinev1alpha1.MachineRunning || current.Phase == machinev1alpha1.MachineAvailable {
			out.ReadyReplicas++
			out.AvailableReplicas++
		}
	}
	slices.SortFunc(out.FailedMachines, func(a, b machinev1alpha1.MachineSummary) int { return cmp.Compare(a.Name, b.Name) })
	message := ""
	if failure != nil {
		message = failure.Error()
	}
	out.Conditions = setCondition(out.Conditions, machinev1alpha1.MachineSetReplicaFailure, message, "MachinesNotChanged", now)
	out.Conditions = setCondition(out.Conditions, machinev1alpha1.MachineSetFrozen, frozen.message, frozen.reason, now)
	return out
}

// setCondition sets a condition that only exists while it is True. It is removed if the message is empty.
func setCondition(conditions []machinev1alpha1.MachineSetCondition, typ machinev1alpha1.MachineSetConditionType, message, reason string, now time.Time) []machinev1alpha1.MachineSetCondition {
	at := slices.IndexFunc(conditions, func(c machinev1alpha1.MachineSetCondition) bool { return c.Type == typ })
	if message == "" {
		if at >= 0 {
			conditions = slices.Delete(slices.Clone(conditions), at, at+1)
		}
		return conditions
	}
	desired := machinev1alpha1.MachineSetCondition{
		Type: typ, Status: machinev1alpha1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}
	if at < 0 {
		return append(conditions, desired)
	}
	desired.LastTransitionTime = conditions[at].LastTransitionTime
	conditions = slices.Clone(conditions)
	conditions[at] = desired
	return conditions
}

// Unfreeze removes the label that freezes a MachineSet or MachineDeployment, and the annotation that requests this.
func Unfreeze(meta *metav1.ObjectMeta) {
	delete(meta.Labels, machinev1alpha1.FreezeLabel)
	delete(meta.Annotations, machinev1alpha1.UnfreezeAnnotation)
}
