package plant

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// maxText is how many bytes the note of an event may have: the API server takes less than 1024.
const maxText = 1023

// report writes the status of a Plant if it differs, with events about what has changed.
func (r *reconciler) report(ctx context.Context, plant *corev1beta1.Plant, o *observed) error {
	before, current, now := plant.DeepCopy(), conditions(o), r.Clock.Now()
	status := &plant.Status
	for _, condition := range current {
		status.Conditions, _ = kube.SetCondition(status.Conditions, condition, now)
	}
	status.ClusterInfo, status.ObservedGeneration = clusterInfo(status.ClusterInfo, o), &plant.Generation
	if apiequality.Semantic.DeepEqual(before.Status, plant.Status) {
		return nil
	}
	// A check takes a while: what it has found out does not count for a Plant that has changed since, such as to another Secret.
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.gardenCache.Status().Patch(ctx, plant, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, condition := range current {
		r.announce(plant, kube.Condition(before.Status.Conditions, condition.Type), condition)
		if condition.Status != corev1beta1.ConditionTrue {
			break // the next one only follows from it
		}
	}
	return nil
}

// announce records an event about a condition with another status than before. That of a new Plant is one only if it is not True.
func (r *reconciler) announce(plant *corev1beta1.Plant, before *corev1beta1.Condition, condition corev1beta1.Condition) {
	good := condition.Status == corev1beta1.ConditionTrue
	if before == nil && good || before != nil && before.Status == condition.Status {
		return
	}
	eventType := corev1.EventTypeWarning
	if good {
		eventType = corev1.EventTypeNormal
	}
	r.recorder.Eventf(plant, nil, eventType, condition.Reason, constants.EventActionHealthCheck, "%s", cut(fmt.Sprintf("%s: %s", condition.Type, condition.Message)))
}

// cut shortens a text to what the note of an event may have.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-len("...")], "") + "..." // a character may have been cut in two
}
