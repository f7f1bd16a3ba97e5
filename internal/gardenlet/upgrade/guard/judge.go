package guard

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// trialTimeout is the end of a trial: pulling an image from a slow registry takes some minutes.
	trialTimeout = 10 * time.Minute
	// steadyTime is how long a new gardenlet has to lead without a restart. One that cannot reach the garden or its seed ends, or is ended by its
	// liveness probe, before.
	steadyTime = time.Minute
	// maxRestarts is how often a container may restart. A new certificate restarts it once.
	maxRestarts = 3
)

// observed is the gardenlet of the seed.
type observed struct {
	// Deployment is nil if it does not exist.
	Deployment *appsv1.Deployment
	Pods       []corev1.Pod
	// Lease is that of the leader election. Nil if it does not exist.
	Lease *coordinationv1.Lease
}

// verdict is what is known about a new gardenlet.
type verdict struct {
	// Works says that it does.
	Works bool
	// Failed is why it does not.
	Failed string
	// RecheckIn is when time alone may change that.
	RecheckIn time.Duration
}

// judge says whether the new gardenlet works.
func judge(t *trial.Trial, o observed, now time.Time) verdict {
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.CreationTimestamp.Before(&t.Since) {
			continue // of the gardenlet before
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount >= maxRestarts {
				return verdict{Failed: fmt.Sprintf("Pod %q: container %q has restarted %d times%s", pod.Name, c.Name, c.RestartCount, ended(c.LastTerminationState.Terminated))}
			}
		}
	}
	steady, reason := steadySince(t, o)
	if reason == "" {
		left := steadyTime - now.Sub(steady)
		if left <= 0 {
			return verdict{Works: true}
		}
		return verdict{RecheckIn: left}
	}
	left := trialTimeout - now.Sub(t.Since.Time)
	if left <= 0 {
		return verdict{Failed: fmt.Sprintf("it does not work after %s: %s", trialTimeout, reason)}
	}
	return verdict{RecheckIn: left}
}

// ended says how a container ended the last time.
func ended(last *corev1.ContainerStateTerminated) string {
	if last == nil {
		return ""
	}
	return fmt.Sprintf(", the last time with exit code %d (%s)", last.ExitCode, last.Reason)
}

// steadySince returns since when all pods are those of the new gardenlet, are ready, and one of them leads and has reached the garden; or why that is not so.
func steadySince(t *trial.Trial, o observed) (time.Time, string) {
	if t.Applied.IsZero() { // what runs may be the gardenlet before
		return time.Time{}, "its objects have not all been applied"
	}
	if o.Deployment == nil {
		return time.Time{}, fmt.Sprintf("Deployment %q does not exist", gardenlet.Name)
	}
	since, leader := t.Applied.Time, ""
	if t.Lease != "" && o.Lease != nil {
		leader, _, _ = strings.Cut(ptr.Deref(o.Lease.Spec.HolderIdentity, ""), "_")
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
	if !leads {
		return time.Time{}, fmt.Sprintf("none of its pods holds Lease %q", t.Lease)
	}
	if !confirmed {
		return time.Time{}, "it has not renewed the Lease of its seed in the garden"
	}
	return since, ""
}
