package gardenletcharts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/wave"
)

// writeCondition writes what a step says into the condition of the Garden, or removes it if no Gardenlet follows the operator.
func (r *reconciler) writeCondition(ctx context.Context, garden *operatorv1alpha1.Garden, step wave.Step) error {
	after, now := garden.DeepCopy(), r.clock.Now()
	if step.Followers > 0 {
		after.Status.Conditions, _ = kube.SetCondition(after.Status.Conditions, condition(step, now), now)
	} else {
		after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, isGardenletsUpdated)
	}
	return r.patch(ctx, garden, after)
}

func isGardenletsUpdated(c corev1beta1.Condition) bool {
	return c.Type == operatorv1alpha1.GardenletsUpdated
}

// forget says in the condition that nothing is known about Gardenlets, if the Garden still has what an operator of another version wrote.
func (r *reconciler) forget(ctx context.Context, garden *operatorv1alpha1.Garden) error {
	ofOther := garden.Status.Gardener == nil || garden.Status.Gardener.Version != r.version
	if !ofOther || !slices.ContainsFunc(garden.Status.Conditions, isGardenletsUpdated) {
		return nil
	}
	after := garden.DeepCopy()
	after.Status.Conditions, _ = kube.SetCondition(after.Status.Conditions, corev1beta1.Condition{
		Type: operatorv1alpha1.GardenletsUpdated, Status: corev1beta1.ConditionUnknown, Reason: operatorv1alpha1.ReasonGardenNotReconciled,
		Message: fmt.Sprintf("No gardenlet is updated until the Garden is reconciled by gardener-operator %s.", r.version),
	}, r.clock.Now())
	return r.patch(ctx, garden, after)
}

// patch writes the conditions of a Garden if they have changed.
func (r *reconciler) patch(ctx context.Context, garden, after *operatorv1alpha1.Garden) error {
	if apiequality.Semantic.DeepEqual(after.Status.Conditions, garden.Status.Conditions) {
		return nil
	}
	// Lists of custom resources are patched as a whole: a condition that was written meanwhile must not be lost.
	patch := client.MergeFromWithOptions(garden, client.MergeFromWithOptimisticLock{})
	if err := r.runtimeCache.Status().Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of Garden %q: %w", garden.Name, err)
	}
	return nil
}

// held says whether a wave does not pass although it should have.
func held(step wave.Step, now time.Time) bool {
	return len(step.Missing) > 0 && (step.Hopeless() || now.Sub(step.Since) >= late)
}

func heldMessage(step wave.Step) string {
	seeds := slices.Sorted(maps.Keys(step.Missing))
	return fmt.Sprintf("Gardenlets of further seeds are not updated, as those of seeds %s are not as healthy as before since %s; first: %s",
		strings.Join(seeds, ", "), step.Since.UTC().Format(time.RFC3339), step.Missing[seeds[0]])
}

// condition says how far the updates are. Gardenlets that are left out, or are too old, are a problem even while the waves go on.
func condition(step wave.Step, now time.Time) corev1beta1.Condition {
	c := corev1beta1.Condition{
		Type: operatorv1alpha1.GardenletsUpdated, Status: corev1beta1.ConditionTrue, Reason: operatorv1alpha1.ReasonGardenletsCurrent,
		Message: "All gardenlets that follow gardener-operator have the chart of its release.",
	}
	if len(step.OwnImage) > 0 {
		c.Message = "All others that follow gardener-operator have the chart of its release."
	}
	switch {
	case held(step, now):
		c.Status, c.Reason, c.Message = corev1beta1.ConditionFalse, operatorv1alpha1.ReasonGardenletUpdatesHeld, heldMessage(step)
	case len(step.Wave) > 0:
		c.Status, c.Reason = corev1beta1.ConditionProgressing, operatorv1alpha1.ReasonGardenletsUpdating
		c.Message = fmt.Sprintf("Gardenlets of seeds %s are being updated.", strings.Join(step.Wave, ", "))
	case step.After > 0:
		c.Status, c.Reason = corev1beta1.ConditionProgressing, operatorv1alpha1.ReasonGardenletsUpdating
		c.Message = "Waiting for gardenlets that have not been ready for a short time."
	}
	if len(step.OwnOverwrite) > 0 {
		c.Message += fmt.Sprintf(" Those of seeds %s keep the image vector overwrite that their Gardenlet has, which may have the images of another release.",
			strings.Join(step.OwnOverwrite, ", "))
	}
	problem := func(reason, message string, seeds []string) {
		if len(seeds) == 0 {
			return
		}
		if c.Reason != operatorv1alpha1.ReasonGardenletUpdatesHeld {
			c.Reason = reason
		}
		c.Status, c.Message = corev1beta1.ConditionFalse, fmt.Sprintf(message, strings.Join(seeds, ", "))+" "+c.Message
	}
	problem(operatorv1alpha1.ReasonGardenletsOwnImage, "Gardenlets of seeds %s are not updated, as spec.deployment.image of their Gardenlet names another image: "+
		"remove it, or change it together with the chart and the image vector overwrite.", step.OwnImage)
	problem(operatorv1alpha1.ReasonGardenletsTooOld, "Gardenlets of seeds %s are older than the previous minor version, which was never tried together with this one.",
		step.Late)
	return c
}
