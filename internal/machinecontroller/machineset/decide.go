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

const (
	// defaultPriority is that of machines without an annotation.
	defaultPriority = 3

	// FreezeLabel with the value "True" keeps a MachineSet from creating machines, and a MachineDeployment from rolling.
	FreezeLabel, FreezeValue = "freeze", "True"
)

// claims says what a set does with the machines that there are.
type claims struct {
	adopt, release, owned []*machinev1alpha1.Machine
}

// claim sorts machines. Those of others are left alone.
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

// plan is what a set does about its number of machines.
type plan struct {
	// create is how many machines are made now.
	create int
	// delete are the machines that go now.
	delete []*machinev1alpha1.Machine
}

// decide compares the machines of a set with what is wanted. Failed ones go, and do not count. No more than burst machines are made or
// deleted at a time.
func decide(set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, burst int) plan {
	var p plan
	var active []*machinev1alpha1.Machine
	for _, machine := range machines {
		switch {
		case machine.DeletionTimestamp != nil:
		case machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed:
			p.delete = append(p.delete, machine)
		default:
			active = append(active, machine)
		}
	}
	if set.DeletionTimestamp != nil {
		return plan{}
	}
	switch missing := int(set.Spec.Replicas) - len(active); {
	case missing > 0 && set.Labels[machinev1alpha1.MachineSetScaleUpDisabled] != "true":
		p.create = missing
	case missing < 0:
		slices.SortFunc(active, goesFirst)
		p.delete = append(p.delete, active[:-missing]...)
	}
	p.create = min(p.create, burst)
	p.delete = p.delete[:min(len(p.delete), burst)]
	return p
}

// goesFirst orders machines: those that somebody marked go first, then those that are the least use, then the newest.
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

// usefulness grows with what a machine is good for.
func usefulness(machine *machinev1alpha1.Machine) int {
	return slices.Index([]machinev1alpha1.MachinePhase{
		machinev1alpha1.MachineTerminating, machinev1alpha1.MachineFailed, machinev1alpha1.MachineCrashLoopBackOff, machinev1alpha1.MachineUnknown,
		"", machinev1alpha1.MachinePending, machinev1alpha1.MachineAvailable, machinev1alpha1.MachineInPlaceUpdateFailed,
		machinev1alpha1.MachineInPlaceUpdating, machinev1alpha1.MachineInPlaceUpdateSuccessful, machinev1alpha1.MachineRunning,
	}, machine.Status.CurrentStatus.Phase)
}

// newMachine is made from the template of a set. The server completes its name.
func newMachine(set *machinev1alpha1.MachineSet) *machinev1alpha1.Machine {
	template := set.Spec.Template.DeepCopy()
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, GenerateName: set.Name + "-",
			Labels: template.ObjectMeta.Labels, Annotations: template.ObjectMeta.Annotations,
			// It is on before what it guards exists.
			Finalizers:      []string{machinev1alpha1.MCFinalizerName},
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

// toTemplate brings to a machine what may change without making a new one: what its Node gets, and the times in its life.
func toTemplate(set *machinev1alpha1.MachineSet, machine *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	want := machine.DeepCopy()
	template := set.Spec.Template.Spec.DeepCopy()
	want.Spec.NodeTemplate, want.Spec.MachineConfiguration = template.NodeTemplate, template.MachineConfiguration
	return want
}

// Why a set is frozen. A set freezes itself when it overshoots, and goes on by itself; what somebody else froze stays so.
const (
	reasonOvershoots = "OverShootingReplicaCount"
	// ReasonLabel is that of MachineDeployments, too.
	ReasonLabel = "FrozenByLabel"
)

// freezing is why a set must not make machines, as its condition says it. Without a reason, it may.
type freezing struct{ reason, message string }

// freeze decides whether a set is frozen: somebody labelled it, or it has so many machines, besides those that are about to go, that
// something goes wrong, such as machines that lose their labels. Then it stays frozen until the surplus is gone.
func freeze(set *machinev1alpha1.MachineSet, machines, up, down int) freezing {
	frozen := set.Labels[FreezeLabel] == FreezeValue
	if frozen && set.Annotations[machinev1alpha1.UnfreezeAnnotation] == FreezeValue {
		return freezing{}
	}
	overshot := slices.ContainsFunc(set.Status.Conditions, func(c machinev1alpha1.MachineSetCondition) bool {
		return c.Type == machinev1alpha1.MachineSetFrozen && c.Reason == reasonOvershoots
	})
	wanted := int(set.Spec.Replicas)
	switch {
	case frozen && !overshot:
		return freezing{ReasonLabel, "The label " + FreezeLabel + " says so."}
	case machines > wanted+up, frozen && machines > wanted+down:
		return freezing{reasonOvershoots, fmt.Sprintf("There are %d machines, and no more than %d are wanted.", machines, wanted)}
	}
	return freezing{}
}

// remaining counts the machines that belong to a set, or look like it, and stay.
func remaining(set *machinev1alpha1.MachineSet, selector labels.Selector, machines []machinev1alpha1.Machine, p plan) int {
	count := 0
	for i := range machines {
		machine := &machines[i]
		owner := metav1.GetControllerOf(machine)
		ours := owner != nil && owner.UID == set.UID || owner == nil && selector.Matches(labels.Set(machine.Labels))
		if ours && machine.DeletionTimestamp == nil && !slices.Contains(p.delete, machine) {
			count++
		}
	}
	return count
}

// status counts machines. It returns when to look again, as a machine becomes available with time.
func status(set *machinev1alpha1.MachineSet, machines []*machinev1alpha1.Machine, frozen freezing, failure error, now time.Time) (machinev1alpha1.MachineSetStatus, time.Duration) {
	out := *set.Status.DeepCopy()
	out.ObservedGeneration = set.Generation
	out.Replicas, out.FullyLabeledReplicas, out.ReadyReplicas, out.AvailableReplicas = 0, 0, 0, 0
	out.FailedMachines = nil
	templateLabels := labels.SelectorFromSet(set.Spec.Template.ObjectMeta.Labels)
	var recheck time.Duration
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
		if current.Phase != machinev1alpha1.MachineRunning {
			continue
		}
		out.ReadyReplicas++
		left := current.LastUpdateTime.Add(time.Duration(set.Spec.MinReadySeconds) * time.Second).Sub(now)
		switch {
		case left <= 0:
			out.AvailableReplicas++
		case recheck == 0 || left < recheck:
			recheck = left
		}
	}
	slices.SortFunc(out.FailedMachines, func(a, b machinev1alpha1.MachineSummary) int { return cmp.Compare(a.Name, b.Name) })
	message := ""
	if failure != nil {
		message = failure.Error()
	}
	out.Conditions = setCondition(out.Conditions, machinev1alpha1.MachineSetReplicaFailure, message, "MachinesNotChanged", now)
	out.Conditions = setCondition(out.Conditions, machinev1alpha1.MachineSetFrozen, frozen.message, frozen.reason, now)
	return out, recheck
}

// setCondition keeps conditions that are only there while something is wrong.
func setCondition(conditions []machinev1alpha1.MachineSetCondition, typ machinev1alpha1.MachineSetConditionType, message, reason string, now time.Time) []machinev1alpha1.MachineSetCondition {
	at := slices.IndexFunc(conditions, func(c machinev1alpha1.MachineSetCondition) bool { return c.Type == typ })
	if message == "" {
		if at >= 0 {
			conditions = slices.Delete(slices.Clone(conditions), at, at+1)
		}
		return conditions
	}
	want := machinev1alpha1.MachineSetCondition{
		Type: typ, Status: machinev1alpha1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}
	if at < 0 {
		return append(conditions, want)
	}
	want.LastTransitionTime = conditions[at].LastTransitionTime
	conditions = slices.Clone(conditions)
	conditions[at] = want
	return conditions
}

// Thaw takes off what freezes a MachineSet or MachineDeployment, and what asks for that.
func Thaw(meta *metav1.ObjectMeta) {
	delete(meta.Labels, FreezeLabel)
	delete(meta.Annotations, machinev1alpha1.UnfreezeAnnotation)
}
