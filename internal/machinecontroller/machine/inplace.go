package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// decideUpdated returns the phase of a machine that is updated in place, or was. While its Node is marked for that, health checks do not matter, only
// the loss of the machine does. Afterwards it runs again as soon as it is healthy; the health timeout is for one that is not after its update.
func decideUpdated(o observation, problem string) verdict {
	if o.lost != "" {
		return lost(machinev1alpha1.MachineOperationInPlaceUpdate, "The machine is lost: %s", o.lost)
	}
	phase := o.machine.Status.CurrentStatus.Phase
	if phase == machinev1alpha1.MachineInPlaceUpdateSuccessful && o.node != nil && !isCandidate(o.node) && problem != "" {
		return unhealthy(o, problem)
	}
	if o.node == nil || isCandidate(o.node) || problem != "" || hasTaint(o.node, constants.TaintNodeCriticalComponentsNotReady) {
		return verdict{phase: phase}
	}
	text := "Node %s does not need the update any more."
	if phase == machinev1alpha1.MachineInPlaceUpdateSuccessful {
		text = "Node %s was updated, and is healthy."
	}
	return verdict{
		phase:     machinev1alpha1.MachineRunning,
		operation: operation(machinev1alpha1.MachineOperationInPlaceUpdate, machinev1alpha1.MachineStateSuccessful, text, o.nodeName),
	}
}

func isCandidate(node *corev1.Node) bool {
	return node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true"
}

// step is what an update in place does next. Each pass does one, and the change of the Node or the Machine begins the next pass.
type step struct {
	// reason is that of the condition of the Node; empty removes the condition.
	reason, message string
	// drain is set if the Node is to be drained before its condition changes to reason.
	drain bool
	// phase is that of the Machine. Empty leaves it to the health checks.
	phase machinev1alpha1.MachinePhase
	// again is set if the user has set the condition to ReadyForUpdate after a failure, whose result does not count any more.
	again bool
	// recheck is the delay before the next check if there is no event.
	recheck time.Duration
}

// nextStep returns the next step. The labels of the Node say what it waits for, and the condition how far it is.
func nextStep(o observation) step {
	node, phase, reason := o.node, o.machine.Status.CurrentStatus.Phase, ""
	if c := updateCondition(node); c != nil {
		reason = c.Reason
	}
	switch {
	case !isCandidate(node):
		if reason == machinev1alpha1.UpdateSuccessful {
			return step{reason: reason}
		}
		return step{}
	case phase == machinev1alpha1.MachinePending || phase == "" && !o.restored:
		return step{reason: reason} // it has not joined yet
	case node.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateSuccessful:
		return step{reason: machinev1alpha1.UpdateSuccessful, message: "The node was updated.", phase: machinev1alpha1.MachineInPlaceUpdateSuccessful}
	case reason == machinev1alpha1.UpdateFailed, node.Labels[machinev1alpha1.NodeUpdateResult] == machinev1alpha1.NodeUpdateFailed && !again(phase, reason):
		return failedStep(node)
	case node.Labels[machinev1alpha1.NodeSelectedForUpdate] != "true":
		s := step{reason: machinev1alpha1.CandidateForUpdate, message: "The node needs an update, and is not selected for it yet."}
		if phase == machinev1alpha1.MachineInPlaceUpdating || phase == machinev1alpha1.MachineInPlaceUpdateSuccessful {
			s.phase = machinev1alpha1.MachineRunning // the label was removed, or it needs another update; others can be selected, and this one again
		}
		return s
	}
	switch reason {
	case machinev1alpha1.SelectedForUpdate:
		return step{reason: machinev1alpha1.DrainSuccessful, message: "The node is drained.", drain: true}
	case machinev1alpha1.DrainSuccessful, machinev1alpha1.ReadyForUpdate:
		return updatingStep(o.machine, o.limits, o.now)
	}
	return step{reason: machinev1alpha1.SelectedForUpdate, message: "The node is being drained."}
}

// again reports whether the user has set the condition to ReadyForUpdate after a failure.
func again(phase machinev1alpha1.MachinePhase, reason string) bool {
	return phase == machinev1alpha1.MachineInPlaceUpdateFailed && reason == machinev1alpha1.ReadyForUpdate
}

// failedStep keeps a machine as it is: the user fixes what is wrong, and the gardener-node-agent tries again, or the user sets the condition to
// ReadyForUpdate.
func failedStep(node *corev1.Node) step {
	message := node.Annotations[machinev1alpha1.MachineUpdateFailedReason]
	if c := updateCondition(node); message == "" && c != nil && c.Reason == machinev1alpha1.UpdateFailed {
		message = c.Message
	}
	if message == "" {
		message = "The gardener-node-agent gives no reason."
	}
	return step{reason: machinev1alpha1.UpdateFailed, message: message, phase: machinev1alpha1.MachineInPlaceUpdateFailed}
}

// updatingStep waits for the gardener-node-agent.
func updatingStep(machine *machinev1alpha1.Machine, limits Limits, now time.Time) step {
	current := machine.Status.CurrentStatus
	s := step{
		reason: machinev1alpha1.ReadyForUpdate, message: "The node is being updated.", phase: machinev1alpha1.MachineInPlaceUpdating, recheck: limits.InPlaceUpdate,
		again: current.Phase == machinev1alpha1.MachineInPlaceUpdateFailed,
	}
	if current.Phase == machinev1alpha1.MachineInPlaceUpdating {
		if s.recheck = current.LastUpdateTime.Add(limits.InPlaceUpdate).Sub(now); s.recheck <= 0 {
			return step{
				reason: machinev1alpha1.UpdateFailed, message: fmt.Sprintf("The gardener-node-agent did not update the node within %s.", limits.InPlaceUpdate),
				phase: machinev1alpha1.MachineInPlaceUpdateFailed,
			}
		}
	}
	return s
}

func updateCondition(node *corev1.Node) *corev1.NodeCondition {
	return nodeCondition(node, machinev1alpha1.NodeInPlaceUpdate)
}

// updateInPlace does the next step of an update in place, if the Node of a machine is marked for one. It changes the Machine in memory too. It returns
// the delay before the next check.
func (r *reconciler) updateInPlace(ctx context.Context, o observation) (time.Duration, error) {
	if o.node == nil || !isCandidate(o.node) && updateCondition(o.node) == nil || o.machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed {
		return 0, nil
	}
	if c := updateCondition(o.node); c != nil && again(o.machine.Status.CurrentStatus.Phase, c.Reason) {
		// The cache may have the Node from before the failure. The phase was written after the condition, so the API server decides.
		var err error
		if o.node, err = nodeOf(ctx, r.targetAPI, o.nodeName); err != nil || o.node == nil {
			return 0, err
		}
	}
	s := nextStep(o)
	if s.again {
		if err := kube.PatchMetadata(ctx, r.targetCache, o.node, func(m *metav1.PartialObjectMetadata) {
			delete(m.Labels, machinev1alpha1.NodeUpdateResult)
			delete(m.Annotations, machinev1alpha1.MachineUpdateFailedReason)
		}); err != nil {
			return 0, err
		}
	}
	if s.drain {
		drained, err := r.drainForUpdate(ctx, o)
		if !drained || err != nil {
			return drainAgain, err
		}
	}
	writes := []func() error{
		func() error { return r.setUpdateCondition(ctx, o.node, s) },
		func() error { return r.setUpdatePhase(ctx, o, s) },
	}
	if s.phase == machinev1alpha1.MachineInPlaceUpdating {
		slices.Reverse(writes) // the gardener-node-agent begins with the condition
	}
	for _, write := range writes {
		if err := write(); err != nil {
			return 0, err
		}
	}
	return s.recheck, nil
}

// setUpdatePhase writes the phase of a Machine, if a step changes it.
func (r *reconciler) setUpdatePhase(ctx context.Context, o observation, s step) error {
	if s.phase == "" || s.phase == o.machine.Status.CurrentStatus.Phase {
		return nil
	}
	state := machinev1alpha1.MachineStateProcessing
	switch s.phase {
	case machinev1alpha1.MachineInPlaceUpdateSuccessful:
		state = machinev1alpha1.MachineStateSuccessful
	case machinev1alpha1.MachineInPlaceUpdateFailed:
		state = machinev1alpha1.MachineStateFailed
	}
	op := operation(machinev1alpha1.MachineOperationInPlaceUpdate, state, "Update of Node %s: %s", o.nodeName, s.message)
	return r.report(ctx, o.machine, verdict{phase: s.phase, operation: op}, o.node)
}

// drainForUpdate drains a Node. Its time-out counts from the condition, so that a restart of the process does not begin it again.
func (r *reconciler) drainForUpdate(ctx context.Context, o observation) (bool, error) {
	force := drainForce(o.machine, o.node, o.limits, false, o.now)
	if o.machine.Labels[machinev1alpha1.ForceDrainLabel] == machinev1alpha1.LabelValueTrue {
		force = "the machine has the label " + machinev1alpha1.ForceDrainLabel
	}
	if c := updateCondition(o.node); force == "" && c != nil && o.now.Sub(c.LastTransitionTime.Time) > o.limits.Drain {
		force = fmt.Sprintf("it took longer than %s", o.limits.Drain)
	}
	left, err := r.drainer.Pass(ctx, o.nodeName, force != "")
	if err != nil {
		return false, err
	}
	if left.Nothing() || !left.Pods() && (force != "" || r.detachedLongEnough(o.machine.UID)) {
		r.detaching.Delete(o.machine.UID)
		return true, nil
	}
	text := fmt.Sprintf("Draining Node %s for its update. %s", o.nodeName, left)
	if force != "" {
		text = fmt.Sprintf("Draining Node %s for its update by force: %s. %s", o.nodeName, force, left)
	}
	op := operation(machinev1alpha1.MachineOperationDrainNode, machinev1alpha1.MachineStateProcessing, "%s", text)
	return false, r.report(ctx, o.machine, verdict{phase: o.machine.Status.CurrentStatus.Phase, operation: op}, o.node)
}

// setUpdateCondition writes the condition of a Node, if it differs.
func (r *reconciler) setUpdateCondition(ctx context.Context, node *corev1.Node, s step) error {
	desired := corev1.NodeCondition{Type: machinev1alpha1.NodeInPlaceUpdate, Reason: s.reason, Message: s.message}
	if s.reason != "" {
		desired.Status = corev1.ConditionTrue
	}
	if current := updateCondition(node); current != nil && current.Reason == s.reason {
		return nil
	}
	logf.FromContext(ctx).Info("Changing condition", "node", node.Name, "type", desired.Type, "reason", s.reason)
	return r.setNodeCondition(ctx, node, desired)
}
