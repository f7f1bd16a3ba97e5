package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/internal/machinecontroller/preservation"
)

// Limits are the timeouts of machines, and the conditions of unhealthy Nodes. A Machine may have its own.
type Limits struct {
	// Creation is how long the creation of a machine may take, and then, how long it may take to join.
	Creation time.Duration
	// Health is how long it may be unhealthy. DisableHealth disables the timeout.
	Health        time.Duration
	DisableHealth bool
	// Drain is how long draining may take.
	Drain time.Duration
	// MaxEvictRetries limits draining too, in units of EvictionRetry. Zero sets no limit.
	MaxEvictRetries int32
	// InPlaceUpdate is how long the gardener-node-agent may take to update its machine in place.
	InPlaceUpdate time.Duration
	// Preserve is how long a machine is kept for inspection.
	Preserve time.Duration
	// NodeConditions are the types of conditions of the Node that make it unhealthy when they are True.
	NodeConditions []string
}

// EvictionRetry is the duration of one retry in MaxEvictRetries.
const EvictionRetry = 20 * time.Second

// limitsOf are the limits of a machine: its own, or else the general ones.
func limitsOf(machine *machinev1alpha1.Machine, general Limits) Limits {
	c := machine.Spec.MachineConfiguration
	if c.CreationTimeout != nil {
		general.Creation = c.CreationTimeout.Duration
	}
	if c.HealthTimeout != nil {
		general.Health = c.HealthTimeout.Duration
	}
	if c.DisableHealthTimeout != nil {
		general.DisableHealth = *c.DisableHealthTimeout
	}
	if c.DrainTimeout != nil {
		general.Drain = c.DrainTimeout.Duration
	}
	if c.InPlaceUpdateTimeout != nil {
		general.InPlaceUpdate = c.InPlaceUpdateTimeout.Duration
	}
	if c.MachinePreserveTimeout != nil {
		general.Preserve = c.MachinePreserveTimeout.Duration
	}
	if c.MaxEvictRetries != nil {
		general.MaxEvictRetries = *c.MaxEvictRetries
	}
	if c.NodeConditions != nil {
		general.NodeConditions = SplitConditions(*c.NodeConditions)
	}
	if tries := time.Duration(general.MaxEvictRetries) * EvictionRetry; tries > 0 && tries < general.Drain {
		general.Drain = tries
	}
	return general
}

// SplitConditions splits a list of condition types at its commas.
func SplitConditions(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// problems describes why a Node is unhealthy, empty if it is healthy.
func problems(name string, node *corev1.Node, badWhenTrue []string) string {
	if node == nil {
		return fmt.Sprintf("Node %s does not exist", name)
	}
	var found []string
	ready := false
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type == corev1.NodeReady:
			ready = condition.Status == corev1.ConditionTrue
			if !ready {
				found = append(found, describe(condition))
			}
		case slices.Contains(badWhenTrue, string(condition.Type)) && condition.Status == corev1.ConditionTrue:
			found = append(found, describe(condition))
		}
	}
	if !ready && len(found) == 0 {
		found = append(found, "it has no condition Ready")
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return fmt.Sprintf("Node %s: %s", name, strings.Join(found, "; "))
}

func describe(c corev1.NodeCondition) string {
	text := fmt.Sprintf("%s is %s", c.Type, c.Status)
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	return text
}

func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// observation is the observed state of a machine that was created at the infrastructure.
type observation struct {
	machine *machinev1alpha1.Machine
	// nodeName is the name of its Node, node the Node, if there is one.
	nodeName string
	node     *corev1.Node
	// restored is set if the machine had joined before its control plane came from another seed, from where Machines come without their status.
	restored bool
	// unlabeled is set if the node template could not be applied to the Node. A machine does not join without it.
	unlabeled bool
	// addresses are those from the infrastructure.
	addresses []corev1.NodeAddress
	// lost is why the machine does not exist at the infrastructure any more, empty if it does.
	lost string
	// mayFail is set if few enough other machines are being replaced.
	mayFail bool
	limits  Limits
	now     time.Time
	// reachableSince is when the target cluster could be reached again after an outage, during which no kubelet could report its health.
	reachableSince time.Time
}

// verdict is the decision about a machine.
type verdict struct {
	phase machinev1alpha1.MachinePhase
	// operation is the last operation to report; nil keeps the current one.
	operation *machinev1alpha1.LastOperation
	// recheck is the delay before the next check if there is no event; 0 for none.
	recheck time.Duration
	// joined is set when the machine has become a Node just now.
	joined bool
	// addresses are those from the infrastructure, which are reported until there is a Node.
	addresses []corev1.NodeAddress
}

// undecided is the delay before a machine is checked again whose replacement has to wait for others.
const undecided = 30 * time.Second

func operation(typ machinev1alpha1.MachineOperationType, state machinev1alpha1.MachineState, format string, args ...any) *machinev1alpha1.LastOperation {
	return &machinev1alpha1.LastOperation{Type: typ, State: state, Description: fmt.Sprintf(format, args...)}
}

// decide returns the phase of a machine.
func decide(o observation) verdict {
	current := o.machine.Status.CurrentStatus
	problem := problems(o.nodeName, o.node, o.limits.NodeConditions)
	switch current.Phase {
	case machinev1alpha1.MachineTerminating:
		return verdict{phase: current.Phase}
	case machinev1alpha1.MachineFailed:
		return decideFailed(o, problem)
	case machinev1alpha1.MachineInPlaceUpdating, machinev1alpha1.MachineInPlaceUpdateSuccessful, machinev1alpha1.MachineInPlaceUpdateFailed:
		return decideUpdated(o, problem)
	case machinev1alpha1.MachineRunning:
		if o.lost != "" {
			return lost(machinev1alpha1.MachineOperationHealthCheck, "The machine is lost: %s", o.lost)
		}
		if problem == "" {
			return verdict{phase: machinev1alpha1.MachineRunning}
		}
		return unhealthy(o, problem)
	case machinev1alpha1.MachineUnknown:
		return decideUnknown(o, problem)
	case "":
		if o.restored {
			return decideRestored(o, problem)
		}
	}
	return decideJoining(o, problem)
}

// unhealthy is the verdict about a machine that ran and has a problem now. The health timeout begins.
func unhealthy(o observation, problem string) verdict {
	v := verdict{
		phase:     machinev1alpha1.MachineUnknown,
		operation: operation(machinev1alpha1.MachineOperationHealthCheck, machinev1alpha1.MachineStateProcessing, "The machine is unhealthy. %s", problem),
	}
	if !o.limits.DisableHealth {
		v.recheck = o.limits.Health
	}
	return v
}

func failed(typ machinev1alpha1.MachineOperationType, format string, args ...any) verdict {
	return verdict{phase: machinev1alpha1.MachineFailed, operation: operation(typ, machinev1alpha1.MachineStateFailed, format, args...)}
}

// lost is the verdict about a machine that does not exist any more, so that there is no reason to keep it.
func lost(typ machinev1alpha1.MachineOperationType, format string, args ...any) verdict {
	v := failed(typ, format, args...)
	v.operation.ErrorCode = string(driver.NotFound)
	return v
}

// decideFailed lets a machine run again that is kept and has recovered. Others stay as they are: their set deletes them.
func decideFailed(o observation, problem string) verdict {
	switch kept := preservation.Kept(o.machine, o.now); {
	case kept && o.lost != "":
		return lost(machinev1alpha1.MachineOperationHealthCheck, "The machine is lost: %s", o.lost)
	case !kept || problem != "" || hasTaint(o.node, constants.TaintNodeCriticalComponentsNotReady):
		return verdict{phase: machinev1alpha1.MachineFailed}
	}
	return verdict{
		phase: machinev1alpha1.MachineRunning, joined: true, // it may have failed as it did not join in time
		operation: operation(machinev1alpha1.MachineOperationHealthCheck, machinev1alpha1.MachineStateSuccessful, "Node %s is healthy again.", o.nodeName),
	}
}

func decideUnknown(o observation, problem string) verdict {
	check := machinev1alpha1.MachineOperationHealthCheck
	if o.lost != "" {
		return lost(check, "The machine is lost: %s", o.lost)
	}
	// Only an update in place puts the taint on a Node that has joined.
	if problem == "" && !isCandidate(o.node) && hasTaint(o.node, constants.TaintNodeCriticalComponentsNotReady) {
		return verdict{
			phase: machinev1alpha1.MachineInPlaceUpdateSuccessful,
			operation: operation(machinev1alpha1.MachineOperationInPlaceUpdate, machinev1alpha1.MachineStateSuccessful,
				"Node %s was updated, and its critical components are not ready.", o.nodeName),
		}
	}
	if problem == "" {
		return verdict{
			phase:     machinev1alpha1.MachineRunning,
			operation: operation(check, machinev1alpha1.MachineStateSuccessful, "Node %s is healthy again.", o.nodeName),
		}
	}
	stay := verdict{
		phase:     machinev1alpha1.MachineUnknown,
		operation: operation(check, machinev1alpha1.MachineStateProcessing, "The machine is unhealthy. %s", problem),
	}
	if o.limits.DisableHealth {
		return stay
	}
	since := o.machine.Status.CurrentStatus.LastUpdateTime.Time
	if o.reachableSince.After(since) {
		since = o.reachableSince
	}
	if left := since.Add(o.limits.Health).Sub(o.now); left > 0 {
		stay.recheck = left
		return stay
	}
	if !o.mayFail {
		stay.recheck = undecided
		return stay
	}
	return failed(check, "The machine was unhealthy for more than %s. %s", o.limits.Health, problem)
}

// decideRestored returns the phase of a machine that had joined on another seed. The creation timeout is not for it, but the health timeout is, if it has one.
func decideRestored(o observation, problem string) verdict {
	check := machinev1alpha1.MachineOperationHealthCheck
	switch {
	case o.lost != "":
		return lost(check, "The machine is lost: %s", o.lost)
	case problem != "":
		return unhealthy(o, problem)
	}
	return verdict{
		phase: machinev1alpha1.MachineRunning, joined: true, // it may not have been Ready before
		operation: operation(check, machinev1alpha1.MachineStateSuccessful, "Node %s is healthy.", o.nodeName),
	}
}

func decideJoining(o observation, problem string) verdict {
	create := machinev1alpha1.MachineOperationCreate
	if o.lost != "" {
		v := lost(create, "The machine was lost before it joined: %s", o.lost)
		if left := o.machine.CreationTimestamp.Add(retryCreation).Sub(o.now); left > 0 {
			// Its replacement may end the same way, so it has to wait.
			v.phase, v.recheck = machinev1alpha1.MachineCrashLoopBackOff, left
		}
		return v
	}
	if problem == "" && hasTaint(o.node, constants.TaintNodeCriticalComponentsNotReady) {
		problem = fmt.Sprintf("Node %s: critical components are not ready", o.nodeName)
	}
	if problem == "" && o.unlabeled { // the error is not repeated here: webhooks of users may have written it
		problem = fmt.Sprintf("Node %s: its labels, annotations and taints cannot be applied", o.nodeName)
	}
	if problem == "" {
		return verdict{
			phase: machinev1alpha1.MachineRunning, joined: true,
			operation: operation(create, machinev1alpha1.MachineStateSuccessful, "The machine joined the cluster as Node %s.", o.nodeName),
		}
	}
	since := o.now // it has just been created, however long that took
	if current := o.machine.Status.CurrentStatus; current.Phase == machinev1alpha1.MachinePending {
		since = current.LastUpdateTime.Time
	}
	if o.reachableSince.After(since) {
		since = o.reachableSince
	}
	left := since.Add(o.limits.Creation).Sub(o.now)
	if left <= 0 {
		return failed(create, "The machine did not join within %s. %s", o.limits.Creation, problem)
	}
	return verdict{
		phase:     machinev1alpha1.MachinePending,
		operation: operation(create, machinev1alpha1.MachineStateProcessing, "Waiting for the machine to join. %s", problem),
		recheck:   left,
	}
}

// isBeingReplaced reports whether a machine counts as one that is being replaced, for the limit of others that may fail at the same time. One that is kept,
// maybe for days, does until its Node is drained, if it has one, and at least for the health timeout: in an outage, others have the time to recover.
func isBeingReplaced(machine *machinev1alpha1.Machine, node *corev1.Node, limits Limits, now time.Time) bool {
	if preservation.Kept(machine, now) {
		return node != nil && !isDrainedAndKept(node) || now.Sub(machine.Status.CurrentStatus.LastUpdateTime.Time) < limits.Health
	}
	switch machine.Status.CurrentStatus.Phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown, machinev1alpha1.MachineInPlaceUpdating,
		machinev1alpha1.MachineInPlaceUpdateSuccessful, machinev1alpha1.MachineInPlaceUpdateFailed:
		return machine.DeletionTimestamp != nil
	default:
		return true
	}
}

const (
	// notReadyTooLong is how long a Node may not be Ready, or have a read-only file system, until it is drained by force, as its kubelet does not end pods.
	notReadyTooLong = 5 * time.Minute
	// readonlyFilesystem is the condition of a Node that cannot write any more, unless its pool does not take it for unhealthy: a volume sets it, too.
	readonlyFilesystem corev1.NodeConditionType = "ReadonlyFilesystem"
)

// drainForce is why a Node is drained by force, empty if it is not.
func drainForce(machine *machinev1alpha1.Machine, node *corev1.Node, limits Limits, lost bool, now time.Time) string {
	if machine.Labels[machinev1alpha1.ForceDeletionLabel] == machinev1alpha1.LabelValueTrue {
		return "the machine is deleted by force"
	}
	if lost {
		return "the machine is lost"
	}
	for _, condition := range node.Status.Conditions {
		switch {
		case now.Sub(condition.LastTransitionTime.Time) <= notReadyTooLong:
		case condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue:
			return fmt.Sprintf("the Node has not been Ready for more than %s", notReadyTooLong)
		case condition.Type == readonlyFilesystem && condition.Status == corev1.ConditionTrue && slices.Contains(limits.NodeConditions, string(readonlyFilesystem)):
			return fmt.Sprintf("the Node has had a read-only file system for more than %s", notReadyTooLong)
		}
	}
	if machine.DeletionTimestamp != nil && now.Sub(machine.DeletionTimestamp.Time) > limits.Drain {
		return fmt.Sprintf("it took longer than %s", limits.Drain)
	}
	return ""
}

// givesUpOnTarget reports whether a machine is deleted even if its Node cannot be drained, as the target cluster is not reachable.
func givesUpOnTarget(machine *machinev1alpha1.Machine, limits Limits, now time.Time) bool {
	return machine.Labels[machinev1alpha1.ForceDeletionLabel] == machinev1alpha1.LabelValueTrue || machine.DeletionTimestamp != nil && now.Sub(machine.DeletionTimestamp.Time) > limits.Drain
}

// decideAfterFailedCreation returns the phase of a machine whose creation at the infrastructure failed.
func decideAfterFailedCreation(machine *machinev1alpha1.Machine, cause *driver.Error, limits Limits, now time.Time) verdict {
	op := operation(machinev1alpha1.MachineOperationCreate, machinev1alpha1.MachineStateFailed, "Cannot create the machine: %v", cause)
	op.ErrorCode = string(cause.Code)
	left := machine.CreationTimestamp.Add(limits.Creation).Sub(now)
	if left <= 0 {
		return verdict{phase: machinev1alpha1.MachineFailed, operation: op}
	}
	retry := retryCreation
	if cause.Code.NeedsEdit() || cause.Code == driver.ResourceExhausted {
		retry = retryRarely
	}
	return verdict{phase: machinev1alpha1.MachineCrashLoopBackOff, operation: op, recheck: min(retry, left)}
}
