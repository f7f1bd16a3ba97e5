package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// Timeout is the end of a trial, if it is checked for so long: pulling an image from a slow registry takes some minutes.
	Timeout = 10 * time.Minute
	// SteadyTime is how long a new gardenlet has to lead without a restart. One that cannot reach the garden or its seed ends, or is ended by its
	// liveness probe, before.
	SteadyTime = time.Minute
	// maxRestarts is how often a container may restart. A new certificate restarts it once.
	maxRestarts = 3
)

// Observed is the gardenlet of the seed.
type Observed struct {
	// Deployment is nil if it does not exist.
	Deployment *appsv1.Deployment
	// Pods are those that have not ended.
	Pods []corev1.Pod
	// Lease is that of the leader election. Nil if it does not exist.
	Lease *coordinationv1.Lease
}

// Observe reads the gardenlet in a cluster during a trial.
func Observe(ctx context.Context, reader client.Reader, t *Trial) (Observed, error) {
	o := Observed{Deployment: &appsv1.Deployment{}, Lease: &coordinationv1.Lease{}}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.Name}, o.Deployment); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("read Deployment %q: %w", gardenlet.Name, err)
	} else if err != nil {
		return Observed{}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Deployment.Spec.Selector)
	if err != nil {
		return o, err
	}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(constants.GardenNamespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return o, fmt.Errorf("list pods of the gardenlet: %w", err)
	}
	// One that was evicted, or ended with its node, stays until it is collected, and another one replaces it.
	o.Pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
	if t.Lease == "" {
		o.Lease = nil
		return o, nil
	}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: t.Lease}, o.Lease); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("read Lease %q: %w", t.Lease, err)
	} else if err != nil {
		o.Lease = nil
	}
	return o, nil
}

// Leader returns the name of the pod that holds the Lease, or "".
func (o Observed) Leader() string {
	if o.Lease == nil {
		return ""
	}
	leader, _, _ := strings.Cut(ptr.Deref(o.Lease.Spec.HolderIdentity, ""), "_")
	return leader
}

// Verdict is what is known about a new gardenlet.
type Verdict struct {
	// Works says that it does.
	Works bool
	// Failed is why it does not.
	Failed string
	// Late says that it has failed by the time only.
	Late bool
	// RecheckIn is when time alone may change that.
	RecheckIn time.Duration
}

// Judge says whether the new gardenlet works.
func Judge(t *Trial, o Observed, now time.Time) Verdict {
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.CreationTimestamp.Before(&t.Since) {
			continue // of the gardenlet before
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount >= maxRestarts {
				failed := fmt.Sprintf("Pod %q: container %q has restarted %d times", pod.Name, c.Name, c.RestartCount)
				if how := Ended(c.LastTerminationState.Terminated); how != "" {
					failed += ", the last time " + how
				}
				return Verdict{Failed: failed}
			}
		}
	}
	steady, reason := steadySince(t, o)
	if reason == "" {
		left := SteadyTime - now.Sub(steady)
		if left <= 0 {
			return Verdict{Works: true}
		}
		return Verdict{RecheckIn: left}
	}
	left := Timeout - now.Sub(t.Since.Time)
	if left <= 0 {
		return Verdict{Failed: fmt.Sprintf("it does not work after %s: %s", Timeout, reason), Late: true}
	}
	return Verdict{RecheckIn: left}
}

// steadySince returns since when all pods are those of the new gardenlet, are ready, and one of them leads and has reached the garden; or why that is not so.
func steadySince(t *Trial, o Observed) (time.Time, string) {
	if t.Applied.IsZero() { // what runs may be the gardenlet before
		return time.Time{}, "its objects have not all been applied"
	}
	if o.Deployment == nil {
		return time.Time{}, fmt.Sprintf("Deployment %q does not exist", gardenlet.Name)
	}
	since, leader := t.Applied.Time, o.Leader()
	if t.Lease != "" && o.Lease != nil {
		if acquired := o.Lease.Spec.AcquireTime; acquired != nil && acquired.After(since) {
			since = acquired.Time
		}
	}
	leads, confirmed := false, false
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := kube.PodReady(pod); err != nil {
			return time.Time{}, err.Error()
		}
		if t.Lease != "" && pod.Name != leader {
			continue
		}
		leads, confirmed = true, confirmed || pod.Name == t.Confirmed
		for _, c := range pod.Status.ContainerStatuses {
			if running := c.State.Running; running != nil && running.StartedAt.After(since) {
				since = running.StartedAt.Time
			}
		}
	}
	if err := kube.DeploymentComplete(o.Deployment); err != nil {
		return time.Time{}, err.Error()
	}
	if ptr.Deref(o.Deployment.Spec.Replicas, 1) == 0 {
		return since, "" // it is to have no pods
	}
	if !leads {
		return time.Time{}, fmt.Sprintf("none of its pods holds Lease %q", t.Lease)
	}
	if !confirmed {
		return time.Time{}, "it has not reached the garden"
	}
	return since, ""
}
