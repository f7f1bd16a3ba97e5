package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
	return fmt.Errorf("Node %q has not reported whether it is ready", node.Name)
}

// PodReady returns why a Pod is not ready, or nil if it is. A Pod that has succeeded counts as ready.
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

// reasonAndMessage joins a reason and a message, either of which may be missing.
func reasonAndMessage(reason, message string) string {
	return strings.Trim(reason+": "+message, ": ")
}

// SingleStack reports whether a node has pod CIDRs of one IP family only. It gets them when it joins, and keeps them.
func SingleStack(node *corev1.Node) bool { return len(node.Spec.PodCIDRs) == 1 }
