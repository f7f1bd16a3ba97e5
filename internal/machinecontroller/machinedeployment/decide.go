package machinedeployment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

const (
	// hashLabel distinguishes the machines of a deployment's sets.
	hashLabel = "machine-template-hash"
	// defaultHistory is how many old sets are kept by default.
	defaultHistory = 10
	// reasonRolledOut is the reason of the condition Progressing that ends an update. The cluster-autoscaler reads it.
	reasonRolledOut = "NewMachineSetAvailable"
)

// replacing is the part of a template whose changes need new machines. The rest is applied to existing ones.
func replacing(template *machinev1alpha1.MachineTemplateSpec) *machinev1alpha1.MachineTemplateSpec {
	part := template.DeepCopy()
	delete(part.ObjectMeta.Labels, hashLabel)
	part.Spec.NodeTemplate, part.Spec.MachineConfiguration = machinev1alpha1.NodeTemplateSpec{}, machinev1alpha1.MachineConfiguration{}
	return part
}

// currentAndOld finds the set that has the template of the deployment; the others are old. They are sorted by revision.
func currentAndOld(d *machinev1alpha1.MachineDeployment, sets []*machinev1alpha1.MachineSet) (*machinev1alpha1.MachineSet, []*machinev1alpha1.MachineSet) {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, func(a, b *machinev1alpha1.MachineSet) int {
		return cmp.Or(cmp.Compare(machineset.Revision(a), machineset.Revision(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	desired := replacing(&d.Spec.Template)
	at := slices.IndexFunc(sets, func(s *machinev1alpha1.MachineSet) bool {
		return s.DeletionTimestamp == nil && apiequality.Semantic.DeepEqual(desired, replacing(&s.Spec.Template))
	})
	if at < 0 {
		return nil, sets
	}
	current := sets[at]
	return current, slices.Delete(sets, at, at+1)
}

// nextRevision is that of the current set, which is above those of all old ones.
func nextRevision(current *machinev1alpha1.MachineSet, old []*machinev1alpha1.MachineSet) int64 {
	highest := int64(0)
	for _, set := range old {
		highest = max(highest, machineset.Revision(set))
	}
	if current != nil && machineset.Revision(current) > highest {
		return machineset.Revision(current)
	}
	return highest + 1
}

// hash is the suffix of a set's name. The number of collisions makes it differ if the name is taken.
func hash(template *machinev1alpha1.MachineTemplateSpec, collisions int32) (string, error) {
	data, err := json.Marshal(replacing(template))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(data, byte(collisions), byte(collisions>>8)))
	return hex.EncodeToString(sum[:])[:5], nil
}

// newSet renders the set for the current template, without machines.
func newSet(d *machinev1alpha1.MachineDeployment, revision int64) (*machinev1alpha1.MachineSet, error) {
	h, err := hash(&d.Spec.Template, ptr.Deref(d.Status.CollisionCount, 0))
	if err != nil {
		return nil, err
	}
	set := &machinev1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + h,
			Annotations:     map[string]string{machineset.RevisionAnnotation: strconv.FormatInt(revision, 10)},
			Finalizers:      []string{machinev1alpha1.MCMFinalizerName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, machinev1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))},
		},
		Spec: machinev1alpha1.MachineSetSpec{
			MinReadySeconds: d.Spec.MinReadySeconds, Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy(),
			MachineClass: d.Spec.Template.Spec.Class, AutoPreserveFailedMachineMax: d.Spec.AutoPreserveFailedMachineMax,
		},
	}
	if set.Spec.Template.ObjectMeta.Labels == nil {
		set.Spec.Template.ObjectMeta.Labels = map[string]string{}
	}
	set.Spec.Template.ObjectMeta.Labels[hashLabel] = h
	set.Labels = maps.Clone(set.Spec.Template.ObjectMeta.Labels)
	if set.Spec.Selector.MatchLabels == nil {
		set.Spec.Selector.MatchLabels = map[string]string{}
	}
	set.Spec.Selector.MatchLabels[hashLabel] = h
	return set, nil
}

// withTemplate applies the part of the template that does not need new machines to a set. Nodes of old machines keep their labels, which have
// the version of Kubernetes and the Secret with the node configuration. With the time of the cluster-autoscaler, the set knows that its replicas no longer
// count the machines that were marked until then.
func withTemplate(d *machinev1alpha1.MachineDeployment, set *machinev1alpha1.MachineSet, current bool) *machinev1alpha1.MachineSet {
	desired := set.DeepCopy()
	template := d.Spec.Template.DeepCopy()
	desired.Spec.Template.Spec.MachineConfiguration = template.Spec.MachineConfiguration
	if current {
		desired.Spec.Template.Spec.NodeTemplate = template.Spec.NodeTemplate
	}
	desired.Spec.MinReadySeconds = d.Spec.MinReadySeconds
	desired.Spec.AutoPreserveFailedMachineMax = d.Spec.AutoPreserveFailedMachineMax
	if at := d.Annotations[machinev1alpha1.LastDeploymentReplicaChangeByScalerTime]; at != "" {
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, machinev1alpha1.LastDeploymentReplicaChangeByScalerTime, at)
	}
	return desired
}

// mark is a machine that is to be marked for deletion, with the time.
type mark struct {
	machine *machinev1alpha1.Machine
	at      string
}

// triggered reads a list of machines to delete, NAME~TIME separated by commas. It returns the list without those that do not exist, are deleted or
// failed, or have no valid time, and the machines in it that are not marked yet.
func triggered(list string, selector labels.Selector, machines []machinev1alpha1.Machine) (kept string, marks []mark) {
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		name, at, found := strings.Cut(entry, "~")
		if _, err := time.Parse(time.RFC3339, at); !found || err != nil {
			continue
		}
		i := slices.IndexFunc(machines, func(m machinev1alpha1.Machine) bool { return m.Name == name && selector.Matches(labels.Set(m.Labels)) })
		if i < 0 || machines[i].DeletionTimestamp != nil || slices.Contains([]machinev1alpha1.MachinePhase{
			machinev1alpha1.MachineFailed, machinev1alpha1.MachineTerminating,
		}, machines[i].Status.CurrentStatus.Phase) {
			continue
		}
		entries = append(entries, entry)
		machine := &machines[i]
		if machine.Annotations[machinev1alpha1.MachinePriority] != "1" || machine.Annotations[machinev1alpha1.MarkedForDeletionTime] == "" {
			marks = append(marks, mark{machine, at})
		}
	}
	return strings.Join(entries, ","), marks
}

// bounds are maxSurge and maxUnavailable as numbers. One of them is above zero, unless the user selects the machines.
func bounds(d *machinev1alpha1.MachineDeployment) (surge, unavailable int32, err error) {
	replicas := int(d.Spec.Replicas)
	var c machinev1alpha1.UpdateConfiguration
	switch d.Spec.Strategy.Type {
	case machinev1alpha1.RecreateMachineDeploymentStrategyType:
		return 0, d.Spec.Replicas, nil
	case machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		if d.Spec.Strategy.InPlaceUpdate != nil {
			c = d.Spec.Strategy.InPlaceUpdate.UpdateConfiguration
		}
	default:
		if d.Spec.Strategy.RollingUpdate != nil {
			c = d.Spec.Strategy.RollingUpdate.UpdateConfiguration
		}
	}
	one := new(intstr.FromInt32(1))
	up, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(c.MaxSurge, one), replicas, true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge: %w", err)
	}
	down, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(c.MaxUnavailable, one), replicas, false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	if up <= 0 && down <= 0 && !manual(d) {
		down = 1 // otherwise no machine could be replaced
	}
	return toInt32(max(0, up)), toInt32(max(0, min(down, replicas))), nil
}

func toInt32(n int) int32 { return int32(min(n, math.MaxInt32)) }

// available counts the available machines of a set that are not deleted. The status may be older than the spec.
func available(set *machinev1alpha1.MachineSet) int32 {
	return min(set.Status.AvailableReplicas, set.Spec.Replicas)
}

// input is the observed state that the replicas of sets are decided from.
type input struct {
	deployment *machinev1alpha1.MachineDeployment
	current    *machinev1alpha1.MachineSet
	// old are the other sets, the oldest first.
	old []*machinev1alpha1.MachineSet
	// oldMachines is the number of machines of old sets, including those that are being deleted.
	oldMachines        int
	surge, unavailable int32
}

// scale returns the replicas of each set, by name.
func scale(in input) map[string]int32 {
	out := map[string]int32{}
	total := in.current.Spec.Replicas
	for _, set := range in.old {
		out[set.Name] = set.Spec.Replicas
		total += set.Spec.Replicas
	}
	out[in.current.Name] = in.current.Spec.Replicas
	desired := in.deployment.Spec.Replicas
	switch {
	case !rolls(in.deployment):
		// Scaling continues, without the new template: the newest set with machines is scaled.
		active := in.current
		if active.Spec.Replicas == 0 {
			for _, set := range slices.Backward(in.old) {
				if set.Spec.Replicas > 0 {
					active = set
					break
				}
			}
		}
		out[active.Name] = max(0, desired-(total-active.Spec.Replicas))
		if in.deployment.Labels[machinev1alpha1.FreezeLabel] == machinev1alpha1.LabelValueTrue {
			out[active.Name] = min(out[active.Name], active.Spec.Replicas)
		}
	case in.deployment.Spec.Strategy.Type == machinev1alpha1.RecreateMachineDeploymentStrategyType:
		for _, set := range in.old {
			out[set.Name] = 0
		}
		if in.oldMachines == 0 {
			out[in.current.Name] = desired
		}
	default:
		roll(in, total, out)
	}
	return out
}

// roll scales up the current set and scales down old ones, within the bounds.
func roll(in input, total int32, out map[string]int32) {
	desired := in.deployment.Spec.Replicas
	current := in.current.Spec.Replicas
	grown := current
	if current > desired {
		grown = desired
	} else if room := desired + in.surge - total; room > 0 {
		grown = min(desired, current+room)
	}
	out[in.current.Name] = grown
	if grown > current {
		return // old sets are scaled down when these are available
	}
	total -= current - grown
	least := max(0, desired-in.unavailable)
	working := min(available(in.current), grown)
	for _, set := range in.old {
		working += available(set)
	}
	// Machines of the current set that are not available yet count as unavailable.
	room := total - least - (grown - min(available(in.current), grown))
	// Machines that are not available are deleted first.
	for _, set := range in.old {
		if n := min(room, set.Spec.Replicas-available(set)); n > 0 {
			out[set.Name] -= n
			room -= n
		}
	}
	room = min(room, working-least)
	for _, set := range in.old {
		if n := min(room, out[set.Name]); n > 0 {
			out[set.Name] -= n
			room -= n
		}
	}
}

// expired are the old sets that are not kept for rollbacks.
func expired(d *machinev1alpha1.MachineDeployment, old []*machinev1alpha1.MachineSet) []*machinev1alpha1.MachineSet {
	keep := int(ptr.Deref(d.Spec.RevisionHistoryLimit, defaultHistory))
	empty := slices.DeleteFunc(slices.Clone(old), func(s *machinev1alpha1.MachineSet) bool {
		return s.DeletionTimestamp != nil || s.Spec.Replicas != 0 || s.Status.Replicas != 0 || s.Status.ObservedGeneration < s.Generation
	})
	return empty[:max(0, len(empty)-keep)]
}

// rollbackTemplate is the template that a deployment is rolled back to, nil if the revision does not exist.
func rollbackTemplate(d *machinev1alpha1.MachineDeployment, current *machinev1alpha1.MachineSet, old []*machinev1alpha1.MachineSet) *machinev1alpha1.MachineTemplateSpec {
	var found *machinev1alpha1.MachineSet
	for _, set := range old {
		if to := d.Spec.RollbackTo.Revision; to == 0 || machineset.Revision(set) == to {
			found = set // the newest one wins
		}
	}
	if found == nil && current != nil && machineset.Revision(current) == d.Spec.RollbackTo.Revision {
		found = current
	}
	if found == nil {
		return nil
	}
	template := found.Spec.Template.DeepCopy()
	delete(template.ObjectMeta.Labels, hashLabel)
	return template
}

// status sums up the sets. It returns the delay until the progress deadline, 0 if there is none.
func status(in input, failure error, now time.Time) (machinev1alpha1.MachineDeploymentStatus, time.Duration) {
	d := in.deployment
	before := d.Status
	out := *before.DeepCopy()
	out.ObservedGeneration = d.Generation
	out.Replicas, out.UpdatedReplicas, out.ReadyReplicas, out.AvailableReplicas, out.FailedMachines, out.PreservedFailedReplicas = 0, 0, 0, 0, nil, 0
	frozen, frozenReason := "", ""
	all := in.old
	if in.current != nil {
		out.UpdatedReplicas = in.current.Status.Replicas
		all = append(slices.Clone(in.old), in.current)
	}
	for _, set := range all {
		out.Replicas += set.Status.Replicas
		out.ReadyReplicas += set.Status.ReadyReplicas
		out.AvailableReplicas += set.Status.AvailableReplicas
		out.PreservedFailedReplicas += set.Status.PreservedFailedReplicas
		out.FailedMachines = append(out.FailedMachines, set.Status.FailedMachines...)
		for _, condition := range set.Status.Conditions {
			if condition.Type == machinev1alpha1.MachineSetFrozen {
				frozen, frozenReason = fmt.Sprintf("MachineSet %s: %s", set.Name, condition.Message), condition.Reason
			}
			if condition.Type == machinev1alpha1.MachineSetReplicaFailure && failure == nil {
				failure = fmt.Errorf("MachineSet %s: %s", set.Name, condition.Message)
			}
		}
	}
	if frozen == "" && d.Labels[machinev1alpha1.FreezeLabel] == machinev1alpha1.LabelValueTrue {
		frozen, frozenReason = "It has the label "+machinev1alpha1.FreezeLabel+".", machineset.ReasonLabel
	}
	slices.SortFunc(out.FailedMachines, func(a, b machinev1alpha1.MachineSummary) int { return cmp.Compare(a.Name, b.Name) })
	out.UnavailableReplicas = max(0, d.Spec.Replicas-out.AvailableReplicas)
	set := func(typ machinev1alpha1.MachineDeploymentConditionType, status machinev1alpha1.ConditionStatus, reason, message string, moved bool) {
		out.Conditions = setCondition(out.Conditions, machinev1alpha1.MachineDeploymentCondition{Type: typ, Status: status, Reason: reason, Message: message}, moved, now)
	}
	if least := d.Spec.Replicas - in.unavailable; out.AvailableReplicas >= least {
		set(machinev1alpha1.MachineDeploymentAvailable, machinev1alpha1.ConditionTrue, "MinimumReplicasAvailable", "Enough machines are available.", false)
	} else {
		set(machinev1alpha1.MachineDeploymentAvailable, machinev1alpha1.ConditionFalse, "MinimumReplicasUnavailable",
			fmt.Sprintf("%d machines are available, and %d are needed.", out.AvailableReplicas, least), false)
	}
	for _, wrong := range []struct {
		typ             machinev1alpha1.MachineDeploymentConditionType
		reason, message string
	}{
		{machinev1alpha1.MachineDeploymentFrozen, frozenReason, frozen},
		{machinev1alpha1.MachineDeploymentReplicaFailure, "MachinesNotChanged", text(failure)},
	} {
		if wrong.message != "" {
			set(wrong.typ, machinev1alpha1.ConditionTrue, wrong.reason, wrong.message, false)
		} else {
			out.Conditions = slices.DeleteFunc(out.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool { return c.Type == wrong.typ })
		}
	}
	moved := out.UpdatedReplicas != before.UpdatedReplicas || out.AvailableReplicas != before.AvailableReplicas || out.Replicas != before.Replicas ||
		out.ReadyReplicas != before.ReadyReplicas || out.ObservedGeneration != before.ObservedGeneration
	status, reason, message, recheck := progress(in, &out, moved, now)
	set(machinev1alpha1.MachineDeploymentProgressing, status, reason, message, moved)
	return out, recheck
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// rolledOut reports whether the current template has been rolled out. What happens to machines later does not undo that, as for Deployments of
// Kubernetes: otherwise the cluster-autoscaler would remove no node while one of them is not ready.
func rolledOut(in input, after *machinev1alpha1.MachineDeploymentStatus) bool {
	if after.Replicas != after.UpdatedReplicas || in.oldMachines > 0 {
		return false
	}
	before := slices.ContainsFunc(in.deployment.Status.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool {
		return c.Type == machinev1alpha1.MachineDeploymentProgressing && c.Reason == reasonRolledOut
	})
	// Nothing has to be done about failed machines that are kept.
	working := after.AvailableReplicas + after.PreservedFailedReplicas
	return before || after.UpdatedReplicas == in.deployment.Spec.Replicas && working == in.deployment.Spec.Replicas
}

// progress returns the condition Progressing.
func progress(in input, after *machinev1alpha1.MachineDeploymentStatus, moved bool, now time.Time) (status machinev1alpha1.ConditionStatus, reason, message string, recheck time.Duration) {
	d := in.deployment
	before := d.Status
	switch {
	case d.Spec.Paused:
		return machinev1alpha1.ConditionUnknown, "DeploymentPaused", "The deployment is paused.", 0
	case in.current == nil:
		return machinev1alpha1.ConditionFalse, "MachineSetCreateError", "There is no machine set for the current template.", 0
	case rolledOut(in, after):
		return machinev1alpha1.ConditionTrue, reasonRolledOut, fmt.Sprintf("All machines are those of MachineSet %s.", in.current.Name), 0
	}
	if failed := failedUpdates(after.FailedMachines); failed != "" {
		return machinev1alpha1.ConditionFalse, "InPlaceUpdateFailed", failed, 0
	}
	message = fmt.Sprintf("%d of %d machines have the current template, %d are available.", after.UpdatedReplicas, d.Spec.Replicas, after.AvailableReplicas)
	if manual(d) {
		message += fmt.Sprintf(" The others are updated when their nodes have the label %s=true.", machinev1alpha1.NodeSelectedForUpdate)
		return machinev1alpha1.ConditionTrue, "MachineSetUpdated", message, 0
	}
	if d.Spec.ProgressDeadlineSeconds == nil {
		return machinev1alpha1.ConditionTrue, "MachineSetUpdated", message, 0
	}
	since := now
	if at := slices.IndexFunc(before.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool {
		return c.Type == machinev1alpha1.MachineDeploymentProgressing && c.Reason != reasonRolledOut && c.Status != machinev1alpha1.ConditionUnknown
	}); at >= 0 && !moved {
		since = before.Conditions[at].LastUpdateTime.Time
	}
	const late = "ProgressDeadlineExceeded"
	if !moved && slices.ContainsFunc(before.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool {
		return c.Type == machinev1alpha1.MachineDeploymentProgressing && c.Reason == late
	}) {
		return machinev1alpha1.ConditionFalse, late, message, 0
	}
	deadline := time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
	if left := since.Add(deadline).Sub(now); left > 0 {
		return machinev1alpha1.ConditionTrue, "MachineSetUpdated", message, left
	}
	return machinev1alpha1.ConditionFalse, late, message, 0
}

// setCondition sets a condition. Its update time changes with it, and when the update has progressed.
func setCondition(conditions []machinev1alpha1.MachineDeploymentCondition, desired machinev1alpha1.MachineDeploymentCondition, moved bool, now time.Time) []machinev1alpha1.MachineDeploymentCondition {
	desired.LastTransitionTime, desired.LastUpdateTime = metav1.NewTime(now), metav1.NewTime(now)
	at := slices.IndexFunc(conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool { return c.Type == desired.Type })
	if at < 0 {
		return append(conditions, desired)
	}
	current := conditions[at]
	if current.Status == desired.Status {
		desired.LastTransitionTime = current.LastTransitionTime
	}
	if !moved && current.Status == desired.Status && current.Reason == desired.Reason && current.Message == desired.Message {
		desired.LastUpdateTime = current.LastUpdateTime
	}
	conditions = slices.Clone(conditions)
	conditions[at] = desired
	return conditions
}
