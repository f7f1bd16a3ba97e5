package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// terminating is the verdict while a machine is deleted.
func terminating(op *machinev1alpha1.LastOperation) verdict {
	return verdict{phase: machinev1alpha1.MachineTerminating, operation: op}
}

// delete drains the Node, deletes the machine, the Node and the token, in this order. Each step checks whether it was done before, so
// a pass may end anywhere.
func (r *reconciler) delete(ctx context.Context, machine *machinev1alpha1.Machine) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(machine, finalizer) && !controllerutil.ContainsFinalizer(machine, formerFinalizer) {
		return reconcile.Result{}, nil
	}
	if machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineTerminating {
		op := operation(machinev1alpha1.MachineOperationDelete, machinev1alpha1.MachineStateProcessing, "The machine is being deleted.")
		if err := r.report(ctx, machine, terminating(op), nil); err != nil {
			return reconcile.Result{}, err
		}
	}
	request, err := r.classOf(ctx, machine)
	if err != nil {
		return r.deletionFailed(ctx, machine, err)
	}
	status, err := r.driver.GetMachineStatus(ctx, request)
	code := driver.CodeOf(err)
	if code != "" && code != driver.NotFound && code != driver.Uninitialized {
		return r.deletionFailed(ctx, machine, fmt.Errorf("read the state of the machine: %w", err))
	}
	nodeName := machine.Labels[machinev1alpha1.NodeLabelKey]
	if nodeName == "" {
		nodeName = status.NodeName
	}
	if wait, result, err := r.drain(ctx, machine, nodeName, code == driver.NotFound); wait || err != nil {
		return result, err
	}
	if err := r.driver.DeleteMachine(ctx, request); err != nil {
		if driver.CodeOf(err) != driver.DeadlineExceeded {
			return r.deletionFailed(ctx, machine, fmt.Errorf("delete the machine: %w", err))
		}
		op := operation(machinev1alpha1.MachineOperationDelete, machinev1alpha1.MachineStateProcessing, "The infrastructure deletes the machine: %v", err)
		return reconcile.Result{RequeueAfter: retrySoon}, r.report(ctx, machine, terminating(op), nil)
	}
	if nodeName != "" {
		if err := r.removeNode(ctx, nodeName); err != nil && !givesUpOnTarget(machine, limitsOf(machine, r.limits), r.clock.Now()) {
			return reconcile.Result{}, err
		}
	}
	if err := r.tokens.Delete(ctx, machine); err != nil && !givesUpOnTarget(machine, limitsOf(machine, r.limits), r.clock.Now()) {
		return reconcile.Result{}, err
	}
	r.detaching.Delete(machine.UID)
	logf.FromContext(ctx).Info("Removing the finalizer of the machine, which is deleted")
	return reconcile.Result{}, client.IgnoreNotFound(kube.PatchMetadata(ctx, r.controlCache, machine, func(o *metav1.PartialObjectMetadata) {
		controllerutil.RemoveFinalizer(o, formerFinalizer)
		controllerutil.RemoveFinalizer(o, finalizer)
	}))
}

// deletionFailed reports an error of the infrastructure. The deletion is retried.
func (r *reconciler) deletionFailed(ctx context.Context, machine *machinev1alpha1.Machine, cause error) (reconcile.Result, error) {
	code := driver.CodeOf(cause)
	op := operation(machinev1alpha1.MachineOperationDelete, machinev1alpha1.MachineStateFailed, "Cannot delete the machine: %v", cause)
	op.ErrorCode = string(code)
	logf.FromContext(ctx).Info("Cannot delete the machine", "code", code, "error", cause.Error())
	after := retryCreation
	if code.NeedsEdit() {
		after = retryRarely
	}
	return reconcile.Result{RequeueAfter: after}, r.report(ctx, machine, terminating(op), nil)
}

// drain drains the Node, if there is one. It returns true while the deletion has to wait for it.
func (r *reconciler) drain(ctx context.Context, machine *machinev1alpha1.Machine, nodeName string, lost bool) (bool, reconcile.Result, error) {
	if nodeName == "" {
		return false, reconcile.Result{}, nil
	}
	limits := limitsOf(machine, r.limits)
	givesUp := givesUpOnTarget(machine, limits, r.clock.Now())
	failed := func(err error) (bool, reconcile.Result, error) {
		if givesUp {
			logf.FromContext(ctx).Info("Giving up on draining", "error", err.Error())
			return false, reconcile.Result{}, nil
		}
		// This does not count as a failure of the machine: draining is retried, and is by force in the end.
		op := operation(machinev1alpha1.MachineOperationDrainNode, machinev1alpha1.MachineStateProcessing, "Cannot drain Node %s yet: %v", nodeName, err)
		return true, reconcile.Result{RequeueAfter: retrySoon}, r.report(ctx, machine, terminating(op), nil)
	}
	node, err := nodeOf(ctx, r.targetAPI, nodeName)
	if err != nil {
		return failed(err)
	}
	if node == nil {
		return false, reconcile.Result{}, nil
	}
	force := drainForce(machine, node, limits, lost, r.clock.Now())
	left, err := r.drainer.Pass(ctx, nodeName, force != "")
	if err != nil {
		return failed(err)
	}
	if left.Nothing() || !left.Pods() && (force != "" || r.detachedLongEnough(machine.UID)) {
		return false, reconcile.Result{}, nil
	}
	text := fmt.Sprintf("Draining Node %s. %s", nodeName, left)
	if force != "" {
		text = fmt.Sprintf("Draining Node %s by force: %s. %s", nodeName, force, left)
	}
	op := operation(machinev1alpha1.MachineOperationDrainNode, machinev1alpha1.MachineStateProcessing, "%s", text)
	return true, reconcile.Result{RequeueAfter: drainAgain}, r.report(ctx, machine, terminating(op), nil)
}

// detachedLongEnough reports whether the timeout for detaching volumes is over.
func (r *reconciler) detachedLongEnough(uid types.UID) bool {
	since, _ := r.detaching.LoadOrStore(uid, r.clock.Now())
	return r.clock.Since(since.(time.Time)) > r.pvDetach //nolint:forcetypeassert // nothing else is stored
}

// removeNode deletes the Node of a machine that is deleted.
func (r *reconciler) removeNode(ctx context.Context, name string) error {
	node, err := nodeOf(ctx, r.targetAPI, name)
	if err != nil || node == nil {
		return err
	}
	if node.DeletionTimestamp == nil {
		if err := r.targetCache.Delete(ctx, &corev1.Node{ObjectMeta: node.ObjectMeta}, client.Preconditions{UID: &node.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Node %s: %w", name, err)
		}
		if node, err = nodeOf(ctx, r.targetAPI, name); err != nil || node == nil {
			return err
		}
	}
	return kube.RemoveFinalizer(ctx, r.targetCache, node, machinev1alpha1.NodeFinalizerName)
}
