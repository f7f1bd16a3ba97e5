package managedseed

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// problem is why a gardenlet does not work, or not yet.
type problem struct {
	// Reason is that of Kubernetes if it has one, such as ImagePullBackOff.
	Reason, Message string
	// Transient says that it may be the start of a pod, or its replacement.
	Transient bool
}

const (
	reasonImagePull = "ImagePullBackOff"
	reasonCrash     = "CrashLoopBackOff"
	// manyRestarts is from which restart on a container that is not ready counts as one that crashes. A new certificate restarts it once.
	manyRestarts = 2
)

// diagnose returns what is wrong with a gardenlet, or nil if it works. The Seed is nil if it is not registered.
func diagnose(o trial.Observed, seed *corev1beta1.Seed) *problem {
	if o.Deployment == nil {
		return &problem{"NotDeployed", fmt.Sprintf("Deployment %q does not exist", gardenlet.Name), true}
	}
	pods := slices.SortedFunc(slices.Values(o.Pods), func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range pods {
		if p := ofPod(&pods[i]); p != nil {
			return p
		}
	}
	if p := ofDeployment(o.Deployment); p != nil {
		return p
	}
	if seed == nil {
		return &problem{"SeedNotRegistered", "it has not registered its Seed", true}
	}
	if ready := gardenletReady(seed); ready.Status != corev1beta1.ConditionTrue {
		return &problem{
			"GardenletNotReady",
			fmt.Sprintf("condition %s of Seed %q is %s: %s", corev1beta1.SeedGardenletReady, seed.Name, cmp.Or(ready.Status, corev1beta1.ConditionUnknown), ready.Message),
			ready.Status == "",
		}
	}
	return nil
}

// ofPod returns why a pod does not start, or nil if nothing says that it does not.
func ofPod(pod *corev1.Pod) *problem {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if p := ofContainer(c); p != nil {
			p.Message = fmt.Sprintf("Pod %q: container %q: %s", pod.Name, c.Name, p.Message)
			return p
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &problem{Reason: cmp.Or(c.Reason, corev1.PodReasonUnschedulable), Message: fmt.Sprintf("Pod %q is not scheduled: %s", pod.Name, c.Message)}
		}
	}
	return nil
}

// ofContainer returns why a container does not run, in the same words between and during the attempts.
func ofContainer(c corev1.ContainerStatus) *problem {
	waiting := corev1.ContainerStateWaiting{}
	if c.State.Waiting != nil {
		waiting = *c.State.Waiting
	}
	switch {
	case waiting.Reason == reasonImagePull || waiting.Reason == "ErrImagePull":
		return &problem{Reason: reasonImagePull, Message: fmt.Sprintf("image %q cannot be pulled", c.Image)}
	case waiting.Reason == reasonCrash || !c.Ready && c.RestartCount >= manyRestarts:
		p := &problem{Reason: reasonCrash, Message: "it crashes"}
		if how := trial.Ended(c.LastTerminationState.Terminated); how != "" {
			p.Message = "it ended " + how
		}
		return p
	case waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		p := &problem{Reason: waiting.Reason, Message: waiting.Reason}
		if waiting.Message != "" {
			p.Message += ": " + waiting.Message
		}
		return p
	}
	return nil
}

// ofDeployment returns why a Deployment is not complete, or nil if it is.
func ofDeployment(d *appsv1.Deployment) *problem {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &problem{Reason: c.Reason, Message: fmt.Sprintf("Deployment %q: %s", d.Name, c.Message)}
		}
	}
	if err := kube.DeploymentComplete(d); err != nil {
		return &problem{"RollingOut", err.Error(), true}
	}
	return nil
}
