package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/preservation"
)

// takenOver returns the annotations of a Machine with what its Node says about keeping it, and whether the annotation of the Node has to go first, as
// the time is over. When a machine recovers, it is not kept automatically any more.
func takenOver(machine *machinev1alpha1.Machine, node *corev1.Node, now time.Time) (annotations map[string]string, over bool) {
	out := maps.Clone(machine.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	failed := machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed
	ended := !failed && preservation.Expired(machine, now)
	value, ofNode := node.Annotations[machinev1alpha1.PreserveMachine]
	ofNode = ofNode && (value == "" || preservation.Valid(value))
	own := out[machinev1alpha1.PreserveMachine]
	switch {
	case ofNode && ended && value != machinev1alpha1.PreserveFalse:
		return out, true
	case ofNode:
		out[machinev1alpha1.LastAppliedNodePreserveValue] = value
		// The set writes PreserveAuto when there is no value.
		if value != "" || own != machinev1alpha1.PreserveAuto {
			delete(out, machinev1alpha1.PreserveMachine)
		}
	default:
		delete(out, machinev1alpha1.LastAppliedNodePreserveValue)
	}
	if ended && own != machinev1alpha1.PreserveFalse || !failed && own == machinev1alpha1.PreserveAuto {
		delete(out, machinev1alpha1.PreserveMachine)
	}
	return out, false
}

// endKeeping removes the annotation of a Node whose time is over. The event of the Node begins the next pass. A webhook of the shoot may refuse that, or
// add it again: then the Machine stays as it is, with a time that is over.
func (r *reconciler) endKeeping(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) error {
	if _, over := takenOver(machine, node, r.clock.Now()); !over {
		return nil
	}
	return kube.PatchMetadata(ctx, r.targetCache, node, func(o *metav1.PartialObjectMetadata) { delete(o.Annotations, machinev1alpha1.PreserveMachine) })
}

// takeOver writes to a Machine what its Node says about keeping it, and changes it in memory too, unless the time is over.
func (r *reconciler) takeOver(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) error {
	annotations, over := takenOver(machine, node, r.clock.Now())
	if over || maps.Equal(machine.Annotations, annotations) {
		return nil
	}
	desired := machine.DeepCopy()
	desired.Annotations = annotations
	if err := r.controlCache.Patch(ctx, desired, client.MergeFrom(machine)); err != nil {
		return fmt.Errorf("annotate Machine %s: %w", machine.Name, err)
	}
	*machine = *desired
	return nil
}

// takeOverInTime does what takeOver does, but not more often than a Machine may be written for that: users of the shoot can change the annotation of the
// Node as often as they like. If it is too early, it returns the delay before the next pass.
func (r *reconciler) takeOverInTime(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) (time.Duration, error) {
	now := r.clock.Now()
	if annotations, over := takenOver(machine, node, now); over || maps.Equal(machine.Annotations, annotations) {
		return 0, nil
	}
	if wait := r.takeovers.wait(client.ObjectKeyFromObject(machine), now); wait > 0 {
		return wait, nil
	}
	return 0, r.takeOver(ctx, machine, node)
}

// keep brings the Node of a machine in line with whether the machine is kept for inspection: the cluster-autoscaler must not remove it, and if the machine
// has failed, nothing is scheduled to it, and its pods move away, but for those of DaemonSets. It returns the delay before the next pass.
func (r *reconciler) keep(ctx context.Context, o observation) (time.Duration, error) {
	current := &o.machine.Status.CurrentStatus
	kept, failed := preservation.Active(o.machine, o.now), current.Phase == machinev1alpha1.MachineFailed
	wait := time.Duration(0)
	if kept {
		wait = current.PreserveExpiryTime.Sub(o.now)
	}
	if _, reachable := r.reachable(); o.node == nil || !reachable || failed && !kept {
		return wait, nil
	}
	later, err := r.takeOverInTime(ctx, o.machine, o.node) // it may have just recovered
	if err != nil {
		return 0, err
	}
	wait = sooner(wait, later)
	node := keptNode(o.node, kept, failed)
	if !apiequality.Semantic.DeepEqual(o.node, node) {
		// With a lock, as taints are a list.
		if err := r.targetCache.Patch(ctx, node, client.MergeFromWithOptions(o.node, client.MergeFromWithOptimisticLock{})); err != nil {
			return 0, fmt.Errorf("keep Node %s: %w", node.Name, err)
		}
	}
	desired := preservedCondition(o.machine, kept, failed)
	if before := nodeCondition(node, machinev1alpha1.NodePreserved); failed && (before == nil || *before != withTimes(desired, before)) {
		left, err := r.drainKept(ctx, o, node)
		if err != nil {
			return 0, err
		}
		if left != "" {
			desired.Message, wait = "The machine has failed. Its node is being drained. "+left, sooner(wait, drainAgain)
		}
	}
	return wait, r.setPreservedCondition(ctx, node, desired)
}

// keptNode returns the Node of a machine that is kept, or is not kept any more. The taint marks that it was cordoned for that.
func keptNode(before *corev1.Node, kept, failed bool) *corev1.Node {
	node := before.DeepCopy()
	c := nodeCondition(node, machinev1alpha1.NodePreserved)
	_, disabled := node.Annotations[machinev1alpha1.ScaleDownDisabled]
	_, own := node.Annotations[machinev1alpha1.ScaleDownDisabledByMCM]
	switch {
	case kept && !disabled:
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.ScaleDownDisabled, "true")
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.ScaleDownDisabledByMCM, "true")
	case !kept && own && c != nil && c.Status == corev1.ConditionTrue && !isCandidate(node): // a Node that waits for its update has them, too
		delete(node.Annotations, machinev1alpha1.ScaleDownDisabled)
		delete(node.Annotations, machinev1alpha1.ScaleDownDisabledByMCM)
	}
	switch marked := hasTaint(node, machinev1alpha1.NodePreservedKey); {
	case failed && !marked:
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: machinev1alpha1.NodePreservedKey, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	case !failed && marked:
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machinev1alpha1.NodePreservedKey })
		node.Spec.Unschedulable = false
	}
	return node
}

// drained is the message of the condition Preserved of a Node whose machine has failed, when all its pods have moved away.
const drained = "The machine has failed. Its node is drained."

// isDrainedAndKept reports whether a Node says that.
func isDrainedAndKept(node *corev1.Node) bool {
	c := nodeCondition(node, machinev1alpha1.NodePreserved)
	return c != nil && c.Status == corev1.ConditionTrue && c.Message == drained
}

// preservedCondition returns the condition of a Node when all is done.
func preservedCondition(machine *machinev1alpha1.Machine, kept, failed bool) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: machinev1alpha1.NodePreserved, Status: corev1.ConditionTrue, Reason: machinev1alpha1.PreservedByUser}
	if preservation.Automatic(machine) {
		c.Reason = machinev1alpha1.PreservedByMCM
	}
	switch {
	case !kept:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, machinev1alpha1.PreservationStopped, "The machine is not kept any more."
	case failed:
		c.Message = drained
	default:
		c.Message = "The machine is kept."
	}
	return c
}

// drainKept drains the Node of a failed machine as far as possible at the moment, and describes what is left. Its time-out counts from the failure.
func (r *reconciler) drainKept(ctx context.Context, o observation, node *corev1.Node) (string, error) {
	force := drainForce(o.machine, node, o.limits, false, o.now) != "" || o.now.Sub(o.machine.Status.CurrentStatus.LastUpdateTime.Time) > o.limits.Drain
	left, err := r.drainer.Pass(ctx, node.Name, force)
	if err != nil || !left.Pods() { // its volumes are detached in their time
		return "", err
	}
	return left.String(), nil
}

// setPreservedCondition writes the condition of a Node, if it differs. A Node whose machine was never kept has none.
func (r *reconciler) setPreservedCondition(ctx context.Context, before *corev1.Node, desired corev1.NodeCondition) error {
	current := nodeCondition(before, desired.Type)
	if current == nil && desired.Status == corev1.ConditionFalse || current != nil && *current == withTimes(desired, current) {
		return nil
	}
	logf.FromContext(ctx).Info("Changing condition", "node", before.Name, "type", desired.Type, "reason", desired.Reason)
	return r.setNodeCondition(ctx, before, desired)
}

// withTimes returns a condition with the times of another one.
func withTimes(c corev1.NodeCondition, of *corev1.NodeCondition) corev1.NodeCondition {
	c.LastHeartbeatTime, c.LastTransitionTime = of.LastHeartbeatTime, of.LastTransitionTime
	return c
}
