package kube

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// DeploymentHealthy returns why a Deployment is not yet as its spec says, or nil if it is.
func DeploymentHealthy(d *appsv1.Deployment) error {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return fmt.Errorf("Deployment %q: its last change has not been seen by its controller", d.Name)
	case s.UpdatedReplicas < want || s.AvailableReplicas < want || s.Replicas > want:
		return fmt.Errorf("Deployment %q: %d of %d pods are updated, %d available", d.Name, s.UpdatedReplicas, want, s.AvailableReplicas)
	}
	return nil
}

// DaemonSetHealthy returns why a DaemonSet is not yet as its spec says, or nil if it is.
func DaemonSetHealthy(d *appsv1.DaemonSet) error {
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation || s.ObservedGeneration == 0:
		return fmt.Errorf("DaemonSet %q: its last change has not been seen by its controller", d.Name)
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled || s.NumberAvailable < s.DesiredNumberScheduled:
		return fmt.Errorf("DaemonSet %q: %d of %d pods are updated, %d available", d.Name, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable)
	}
	return nil
}

// NodeReady returns why a Node is not ready, or nil if it is.
func NodeReady(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("Node %q is not ready: %s", node.Name, condition.Message)
	}
	return fmt.Errorf("Node %q has not said whether it is ready", node.Name)
}

// PodReady returns why a Pod is not ready, or nil if it is. A Pod that has run to its end is as ready as it gets.
func PodReady(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" {
			return fmt.Errorf("Pod %q: container %q: %s", pod.Name, status.Name, reasonAndMessage(waiting.Reason, waiting.Message))
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue && condition.Message != "" {
			return fmt.Errorf("Pod %q is not scheduled: %s", pod.Name, condition.Message)
		}
	}
	if why := reasonAndMessage(pod.Status.Reason, pod.Status.Message); why != "" {
		return fmt.Errorf("Pod %q is not ready: %s", pod.Name, why)
	}
	return fmt.Errorf("Pod %q is not ready", pod.Name)
}

// reasonAndMessage are the words of a kubelet, of which either may be missing.
func reasonAndMessage(reason, message string) string {
	return strings.Trim(reason+": "+message, ": ")
}
