package machine

import (
	"context"
	"fmt"
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

const (
	// maxConditions and maxAddresses are how many a Machine has of its Node's. A kubelet writes five, and node-problem-detector some twenty.
	maxConditions, maxAddresses = 40, 40
	// maxText is the length of a text of a Node in bytes, and maxType that of the types of its conditions.
	maxText, maxType = 1 << 10, 316
)

// conditionsOf returns the conditions of a Node for its Machine, which is in the seed. Users of the shoot can write any number of them, of
// any length.
func conditionsOf(node *corev1.Node) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		if len(c.Type) > maxType || len(c.Status) > maxType || len(conditions) >= maxConditions && c.Type != corev1.NodeReady {
			continue
		}
		c.Reason, c.Message = kube.Shorten(c.Reason, maxText), kube.Shorten(c.Message, maxText)
		conditions = append(conditions, c)
	}
	return conditions
}

// addressesOf does so with addresses.
func addressesOf(node *corev1.Node) []corev1.NodeAddress {
	var addresses []corev1.NodeAddress
	for _, a := range node.Status.Addresses {
		if len(a.Type) <= maxText && len(a.Address) <= maxText && len(addresses) < maxAddresses {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// statusBy returns the status of a Machine by a verdict. Times only change with what they are about. That a machine is kept for inspection is in it
// together with the phase, so that its set never sees one without the other.
func statusBy(machine *machinev1alpha1.Machine, v verdict, node *corev1.Node, now metav1.Time, preserve time.Duration) machinev1alpha1.MachineStatus {
	machine = machine.DeepCopy()
	status := &machine.Status
	if v.phase != status.CurrentStatus.Phase {
		status.CurrentStatus.Phase, status.CurrentStatus.LastUpdateTime = v.phase, now
		switch v.phase {
		case machinev1alpha1.MachinePending, machinev1alpha1.MachineUnknown, machinev1alpha1.MachineCrashLoopBackOff:
			status.CurrentStatus.TimeoutActive = true
		default:
			status.CurrentStatus.TimeoutActive = false
		}
	}
	if v.operation != nil {
		next := *v.operation
		next.Description = kube.Shorten(next.Description, maxText)
		next.LastUpdateTime = status.LastOperation.LastUpdateTime
		if next != status.LastOperation {
			next.LastUpdateTime = now
			status.LastOperation = next
		}
	}
	if node == nil && len(v.addresses) > 0 {
		status.Addresses = v.addresses
	}
	if node != nil {
		if conditions := conditionsOf(node); !sameConditions(status.Conditions, conditions) {
			status.Conditions = conditions
		}
		if addresses := addressesOf(node); len(addresses) > 0 {
			status.Addresses = addresses
		}
	}
	status.CurrentStatus.PreserveExpiryTime = preservation.Expiry(machine, now.Time, preserve)
	return *status
}

// reportHealth does what report does, for a status that users of the shoot can change through the Node as often as they like. A Machine that
// changes all the time is written every writeEvery only: if it is too early, wait says how long to wait for the next pass, which writes what
// is current then.
func (r *reconciler) reportHealth(ctx context.Context, machine *machinev1alpha1.Machine, v verdict, node *corev1.Node) (wait time.Duration, err error) {
	now := r.clock.Now()
	if apiequality.Semantic.DeepEqual(machine.Status, statusBy(machine, v, node, metav1.NewTime(now), limitsOf(machine, r.limits).Preserve)) {
		return 0, nil
	}
	if wait := r.writes.wait(client.ObjectKeyFromObject(machine), now); wait > 0 {
		return wait, nil
	}
	return 0, r.report(ctx, machine, v, node)
}

// report writes the status by a verdict, if it differs, and updates the given Machine. It is the only writer of the status.
func (r *reconciler) report(ctx context.Context, machine *machinev1alpha1.Machine, v verdict, node *corev1.Node) error {
	before := machine.DeepCopy()
	status := &machine.Status
	*status = statusBy(machine, v, node, metav1.NewTime(r.clock.Now()), limitsOf(machine, r.limits).Preserve)
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	// With a lock, as the verdict is about the Machine as it was read.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.controlCache.Status().Patch(ctx, machine, patch); err != nil {
		return fmt.Errorf("write the status of Machine %s: %w", machine.Name, err)
	}
	if v.phase != before.Status.CurrentStatus.Phase {
		logf.FromContext(ctx).Info("Changing phase", "from", before.Status.CurrentStatus.Phase, "to", v.phase, "reason", status.LastOperation.Description)
		typ := corev1.EventTypeNormal
		if v.phase == machinev1alpha1.MachineFailed || v.phase == machinev1alpha1.MachineUnknown || v.phase == machinev1alpha1.MachineCrashLoopBackOff {
			typ = corev1.EventTypeWarning
		}
		r.events.Eventf(machine, nil, typ, string(v.phase), string(status.LastOperation.Type), "%s", status.LastOperation.Description)
	}
	return nil
}

// sameConditions compares conditions without their heartbeats.
func sameConditions(a, b []corev1.NodeCondition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		x.LastHeartbeatTime, y.LastHeartbeatTime = metav1.Time{}, metav1.Time{}
		if !apiequality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
