package care

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// stuckAfter is how long after its deletion timestamp a pod counts as stuck.
const stuckAfter = 5 * time.Minute

// stale is whether a pod should be deleted: it was evicted or rejected by its node, or is stuck in its deletion.
func stale(pod *corev1.Pod, now time.Time) bool {
	if pod.DeletionTimestamp != nil {
		return now.Sub(pod.DeletionTimestamp.Time) > stuckAfter
	}
	reason := pod.Status.Reason
	return reason == "Evicted" || reason == "NodeAffinity" || strings.HasPrefix(reason, "OutOf")
}

// deleteStaleControlPlanePods deletes stale pods in the namespace of a control plane.
func (r *reconciler) deleteStaleControlPlanePods(ctx context.Context, namespace string) error {
	pods := &corev1.PodList{}
	if err := r.seedCache.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	return deleteStale(ctx, r.seedCache, pods.Items, r.Clock.Now())
}

// deleteStaleSystemPods deletes stale pods of system components. It reads failed pods, which are few, and only the metadata of all others.
func (o *observed) deleteStaleSystemPods(ctx context.Context, now time.Time) error {
	system, failed, all := client.InNamespace(metav1.NamespaceSystem), &corev1.PodList{}, metadataListOf("Pod")
	if err := o.shootClient.List(ctx, failed, fromCache(), system, client.MatchingFields{"status.phase": string(corev1.PodFailed)}); err != nil {
		return fmt.Errorf("list failed pods of system components: %w", err)
	}
	if err := o.shootClient.List(ctx, all, fromCache(), system); err != nil {
		return fmt.Errorf("list pods of system components: %w", err)
	}
	for i := range all.Items {
		failed.Items = append(failed.Items, corev1.Pod{ObjectMeta: all.Items[i].ObjectMeta})
	}
	return deleteStale(ctx, o.shootClient, failed.Items, now)
}

// deleteStale deletes those pods that are stale, all that it can. Another pod may have the name of a stale one by now, so it also compares
// the UID.
func deleteStale(ctx context.Context, c client.Client, pods []corev1.Pod, now time.Time) error {
	var errs []error
	for i := range pods {
		if pod := &pods[i]; stale(pod, now) {
			logf.FromContext(ctx).Info("Deleting stale pod", "namespace", pod.Namespace, "pod", pod.Name, "reason", pod.Status.Reason)
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		}
	}
	return errors.Join(errs...)
}
