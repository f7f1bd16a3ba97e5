package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestStatusChanged(t *testing.T) {
	p := StatusChanged(func(pod *corev1.Pod) any { return pod.Status.Phase })
	pod := func(phase corev1.PodPhase, message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Message: message}}
	}
	for name, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"what the controller writes": {pod("Running", ""), pod("Failed", ""), true},
		"something else":             {pod("Running", "a"), pod("Running", "b"), false},
		"another kind":               {&corev1.Node{}, &corev1.Node{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("the update is passed: %t, want %t", got, tc.want)
			}
		})
	}
}
