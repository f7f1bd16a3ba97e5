package managedseed

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

func shootCondition(reconciled bool, shoot *corev1beta1.Shoot) corev1beta1.Condition {
	c := corev1beta1.Condition{
		Type: seedmanagementv1alpha1.ManagedSeedShootReconciled, Status: corev1beta1.ConditionTrue, Reason: "Reconciled",
		Message: fmt.Sprintf("Shoot %s has been reconciled", shoot.Name),
	}
	if !reconciled {
		c.Status, c.Reason, c.Message = corev1beta1.ConditionFalse, "Reconciling", fmt.Sprintf("Waiting for shoot %s to be reconciled", shoot.Name)
	}
	return c
}

func seedCondition(status corev1beta1.ConditionStatus, reason, message string) corev1beta1.Condition {
	return corev1beta1.Condition{Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: status, Reason: reason, Message: message}
}

func registered(name string, seed *corev1beta1.Seed) corev1beta1.Condition {
	if seed == nil {
		return seedCondition(corev1beta1.ConditionProgressing, "EventReconciling",
			fmt.Sprintf("The gardenlet has been deployed. It has not registered Seed %s yet", name))
	}
	return seedCondition(corev1beta1.ConditionTrue, "EventReconciled", fmt.Sprintf("Seed %s has been registered", name))
}

// undeployed is for a Seed that is not registered, as its gardenlet has to wait.
func undeployed() corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionProgressing, "EventReconciling",
		"Waiting until the update of the gardenlet of the parent seed works or is rolled back")
}

func failed(err error) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "ReconcileError", err.Error())
}

func deleting(message string) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "Deleting", message)
}

func deleteFailed(err error) corev1beta1.Condition {
	return seedCondition(corev1beta1.ConditionFalse, "DeleteError", err.Error())
}

// health returns the condition that says whether the gardenlet works.
func health(d deployed, now time.Time) corev1beta1.Condition {
	c := corev1beta1.Condition{Type: seedmanagementv1alpha1.ManagedSeedGardenletHealthy}
	switch {
	case d.Trial.State == trial.RolledBack:
		c.Status, c.Reason = corev1beta1.ConditionFalse, seedmanagementv1alpha1.GardenletReasonRolledBack
		c.Message = "The gardenlet has been deployed, and rolled back to the one before: " + d.Trial.Reason
		if d.Problem != nil && now.Sub(d.Trial.Since.Time) >= trial.SteadyTime {
			c.Message += ". The one before does not work either: " + d.Problem.Message
		}
		c.Message += ". It is not tried again until the ManagedSeed changes, or the release, the image or the configuration that it has from the gardenlet of its parent seed, " +
			"or the ManagedSeed is annotated with gardener.cloud/operation=reconcile"
	case d.Trial.State == trial.Trying && d.Verdict.Failed == "":
		c.Status, c.Reason, c.Message = corev1beta1.ConditionProgressing, "Deploying", "The gardenlet has been deployed"
		if len(d.Trial.Previous) > 0 {
			c.Message += ". It is rolled back if it does not work"
		}
		if d.Problem != nil {
			c.Reason, c.Message = d.Problem.Reason, c.Message+": "+d.Problem.Message
		}
	case d.Problem == nil:
		c.Status, c.Reason, c.Message = corev1beta1.ConditionTrue, "GardenletHealthy", "The gardenlet works"
	default:
		c.Status, c.Reason, c.Message = corev1beta1.ConditionFalse, d.Problem.Reason, d.Problem.Message
		if d.Problem.Transient && d.Trial.State == trial.Succeeded {
			c.Status = corev1beta1.ConditionProgressing
		}
		if d.Trial.State == trial.Trying {
			c.Message += ". There is no gardenlet before to roll back to"
		}
	}
	return c
}

// report writes what differs in the status, with an event if the gardenlet has become healthy or not. The generation is observed when the shoot is
// reconciled and the seed registered, whether the gardenlet works or not. It works after the end of the pass too.
func (r *reconciler) report(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, conditions ...corev1beta1.Condition) error {
	after, differs, done := object.DeepCopy(), false, len(conditions) > 1
	for _, condition := range conditions {
		var changed bool
		after.Status.Conditions, changed = kube.SetCondition(after.Status.Conditions, condition, r.Clock.Now())
		differs = differs || changed
		done = done && (condition.Status == corev1beta1.ConditionTrue || condition.Type == seedmanagementv1alpha1.ManagedSeedGardenletHealthy)
	}
	if done && after.Status.ObservedGeneration != object.Generation {
		after.Status.ObservedGeneration, differs = object.Generation, true
	}
	if !differs {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	// A list cannot be merged.
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := r.gardenCache.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of ManagedSeed %q: %w", object.Name, err)
	}
	r.event(object, after)
	return nil
}

// maxNote is the length of the text of an event, in bytes: the API server refuses longer ones.
const maxNote = 1000

// event records that the gardenlet of a ManagedSeed has become healthy or not.
func (r *reconciler) event(before, after *seedmanagementv1alpha1.ManagedSeed) {
	was := ptr.Deref(kube.Condition(before.Status.Conditions, seedmanagementv1alpha1.ManagedSeedGardenletHealthy), corev1beta1.Condition{})
	is := ptr.Deref(kube.Condition(after.Status.Conditions, seedmanagementv1alpha1.ManagedSeedGardenletHealthy), corev1beta1.Condition{})
	if was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	switch is.Status {
	case corev1beta1.ConditionTrue:
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, is.Reason, "Deploy", "%s", is.Message)
	case corev1beta1.ConditionFalse:
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, "Deploy", "%s", kube.Shorten(is.Message, maxNote))
	case corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown:
	}
}
