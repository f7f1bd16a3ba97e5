package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/preservation"
)

// defaultPriority is the priority of machines without the annotation.
const defaultPriority = 3

// markedPriority is that of machines that the cluster-autoscaler has chosen.
const markedPriority = 1

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

// plan is which machines a set creates, deletes and keeps.
type plan struct {
	// create is how many machines are created now.
	create int
	// delete are the machines that are deleted now.
	delete []*machinev1alpha1.Machine
	// preserve are the failed machines that are kept from now on, instead of being deleted.
	preserve []*machinev1alpha1.Machine
	// recheck is the delay until the first failed machine is not kept any more; 0 if none is.
	recheck time.Duration
}

// decide compares the machines of a set with its replicas. Failed ones are deleted, and do not count, unless they are kept. While the machines of its
// deployment are replaced, none is kept. Those that the cluster-autoscaler has chosen are deleted and do not count either: their nodes are cordoned, whatever
// the replicas are now. No more than burst machines are created or deleted at a time.
func decide(set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, burst int, rolls bool, now time.Time) plan {
	var p plan
	var active, failed, chosen []*machinev1alpha1.Machine
	moving := 0
	for _, machine := range machines {
		switch {
		case machine.DeletionTimestamp != nil:
		case IsMoving(machine):
			moving++
		case machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed:
			failed = append(failed, machine)
		case triggered(set, machine):
			chosen = append(chosen, machine)
		default:
			active = append(active, machine)
		}
	}
	if set.DeletionTimestamp != nil {
		return plan{}
	}
	var kept []*machinev1alpha1.Machine
	if !rolls {
		kept, p.preserve = keep(set, failed, now)
	}
	for _, machine := range failed {
		if !slices.Contains(kept, machine) {
			p.delete = append(p.delete, machine)
		}
	}
	p.delete = append(p.delete, chosen...)
	active = append(active, kept...)
	// Replicas may count machines that are moving, or may not yet.
	switch missing := int(set.Spec.Replicas) - len(active); {
	case missing > moving && set.Labels[machinev1alpha1.MachineSetScaleUpDisabled] != "true":
		p.create = missing - moving
	case missing < 0:
		slices.SortFunc(active, func(a, b *machinev1alpha1.Machine) int { return goesFirst(a, b, rolls, now) })
		p.delete = append(p.delete, active[:-missing]...)
	}
	p.create = min(p.create, burst)
	p.delete = p.delete[:min(len(p.delete), burst)]
	p.preserve = slices.DeleteFunc(p.preserve, func(m *machinev1alpha1.Machine) bool { return slices.Contains(p.delete, m) })
	for _, machine := range kept {
		if left := leftOf(machine, now); left > 0 && (p.recheck == 0 || left < p.recheck) {
			p.recheck = left
		}
	}
	return p
}

// triggered reports whether the cluster-autoscaler has chosen a machine, and replicas of the set were changed for that already.
func triggered(set *machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine) bool {
	marked, err := time.Parse(time.RFC3339, machine.Annotations[machinev1alpha1.MarkedForDeletionTime])
	if err != nil || priority(machine) != markedPriority {
		return false
	}
	scaled, err := time.Parse(time.RFC3339, set.Annotations[machinev1alpha1.LastDeploymentReplicaChangeByScalerTime])
	return err == nil && !marked.After(scaled)
}

// keep selects the failed machines that are kept: those for which the user wants that, and automatically the newest ones, up to the maximum of the set. The
// ones that are kept automatically from now on are returned for themselves, too. If the maximum has become smaller, those go whose time is over first.
func keep(set *machinev1alpha1.MachineSet, failed []*machinev1alpha1.Machine, now time.Time) (kept, preserve []*machinev1alpha1.Machine) {
	var automatic, candidates []*machinev1alpha1.Machine
	for _, machine := range failed {
		switch {
		case preservation.Kept(machine, now) && preservation.Automatic(machine):
			automatic = append(automatic, machine)
		case preservation.Kept(machine, now):
			kept = append(kept, machine)
		case preservation.Candidate(machine):
			candidates = append(candidates, machine)
		}
	}
	most := int(max(0, ptr.Deref(set.Spec.AutoPreserveFailedMachineMax, 0)))
	slices.SortFunc(automatic, func(a, b *machinev1alpha1.Machine) int { return compareExpiry(b, a) })
	automatic = automatic[:min(most, len(automatic))]
	slices.SortFunc(candidates, func(a, b *machinev1alpha1.Machine) int {
		return cmp.Or(b.Status.CurrentStatus.LastUpdateTime.Compare(a.Status.CurrentStatus.LastUpdateTime.Time), cmp.Compare(a.Name, b.Name))
	})
	preserve = candidates[:min(most-len(automatic), len(candidates))]
	return slices.Concat(kept, automatic, preserve), preserve
}

// leftOf is how long a machine is still kept; 0 if it is not, or not known yet.
func leftOf(machine *machinev1alpha1.Machine, now time.Time) time.Duration {
	if !preservation.Active(machine, now) {
		return 0
	}
	return machine.Status.CurrentStatus.PreserveExpiryTime.Sub(now)
}

// compareExpiry compares machines by the end of the time for which they are kept. It has not begun yet for those without it.
func compareExpiry(a, b *machinev1alpha1.Machine) int {
	x, y := a.Status.CurrentStatus.PreserveExpiryTime, b.Status.CurrentStatus.PreserveExpiryTime
	switch {
	case x != nil && y != nil:
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.Name, b.Name))
	case x != nil:
		return -1
	case y != nil:
		return 1
	}
	return cmp.Compare(a.Name, b.Name)
}

// rolls reports whether the machines of a deployment are being replaced: it has a newer set than this one, or there are machines in others.
func rolls(set *machinev1alpha1.MachineSet, sets []machinev1alpha1.MachineSet) bool {
	owner := metav1.GetControllerOf(set)
	return owner != nil && slices.ContainsFunc(sets, func(other machinev1alpha1.MachineSet) bool {
		of := metav1.GetControllerOf(&other)
		return of != nil && of.UID == owner.UID && other.UID != set.UID &&
			(Revision(&other) > Revision(set) || other.Spec.Replicas > 0 || other.Status.Replicas > 0)
	})
}

// RevisionAnnotation numbers the sets of a deployment, the highest one being the current.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// Revision is the number of a set in its deployment; 0 if it has none.
func Revision(set *machinev1alpha1.MachineSet) int64 {
	number, err := strconv.ParseInt(set.Annotations[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// IsMoving reports whether a machine was updated in place and has just moved to its set, whose replicas may not count it yet.
func IsMoving(machine *machinev1alpha1.Machine) bool {
	return machine.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateSuccessful
}

// goesFirst compares machines by the order of their deletion: first those that are marked for it; those that are kept for inspection last; then by
// priority, by usefulness, and the newest.
func goesFirst(a, b *machinev1alpha1.Machine, rolls bool, now time.Time) int {
	kept := 0
	if !rolls {
		kept = compareKept(a, b, now)
	}
	return cmp.Or(
		cmp.Compare(min(priority(a), markedPriority+1), min(priority(b), markedPriority+1)),
		kept,
		cmp.Compare(priority(a), priority(b)),
		cmp.Compare(usefulness(a), usefulness(b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareKept compares machines that are kept for inspection, by their users after those that are automatically, by the end of their time, and others.
func compareKept(a, b *machinev1alpha1.Machine, now time.Time) int {
	rank := func(m *machinev1alpha1.Machine) int {
		switch {
		case !preservation.Active(m, now) && !preservation.Kept(m, now):
			return 0
		case preservation.Automatic(m):
			return 1
		}
		return 2
	}
	if order := cmp.Compare(rank(a), rank(b)); order != 0 || rank(a) == 0 {
		return order
	}
	return compareExpiry(a, b)
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
//
// A failed machine that is kept counts as a replica, so that it is not replaced, while the machines of the deployment are not.
func status(
	set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, frozen freezing, failure error, rolls bool, now time.Time,
) machinev1alpha1.MachineSetStatus {
	out := *set.Status.DeepCopy()
	out.ObservedGeneration = set.Generation
	out.Replicas, out.FullyLabeledReplicas, out.ReadyReplicas, out.AvailableReplicas = 0, 0, 0, 0
	out.FailedMachines, out.PreservedFailedReplicas, out.AutoPreserveFailedMachineCount = nil, 0, nil
	automatic := int32(0)
	templateLabels := labels.SelectorFromSet(set.Spec.Template.ObjectMeta.Labels)
	for _, machine := range machines {
		current := machine.Status.CurrentStatus
		if operation := machine.Status.LastOperation; operation.State == machinev1alpha1.MachineStateFailed {
			out.FailedMachines = append(out.FailedMachines, machinev1alpha1.MachineSummary{
				Name: machine.Name, ProviderID: machine.Spec.ProviderID, OwnerRef: set.Name, LastOperation: operation,
			})
		}
		kept := !rolls && preservation.Kept(machine, now)
		if machine.DeletionTimestamp != nil || current.Phase == machinev1alpha1.MachineFailed && !kept {
			continue
		}
		if kept {
			out.PreservedFailedReplicas++
			if preservation.Automatic(machine) {
				automatic++
			}
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
	if automatic > 0 || set.Spec.AutoPreserveFailedMachineMax != nil {
		out.AutoPreserveFailedMachineCount = &automatic
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
