package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodReady(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"ready":     {status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}},
		"succeeded": {status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		"no status": {want: `Pod "a" is not ready`},
		"a container cannot start": {
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}},
			}},
			want: `Pod "a": container "b": ErrImagePull: no such image`,
		},
		"no node": {
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes"}}},
			want:   `Pod "a" is not scheduled: 0/1 nodes`,
		},
		"evicted": {
			status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."},
			want:   `Pod "a" is not ready: Evicted: The node was low on resource: memory.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := PodReady(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: tc.status}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
