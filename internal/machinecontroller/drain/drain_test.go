package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	deleting := metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}
	kept, slow := deleting, deleting
	kept.DeletionGracePeriodSeconds, slow.DeletionGracePeriodSeconds = new(int64(0)), new(int64(30))
	ofKind := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}}
	}
	for name, tc := range map[string]struct {
		pod         corev1.Pod
		want, force action
	}{
		"a pod is evicted":             {corev1.Pod{}, isEvicted, isDeleted},
		"one of a ReplicaSet too":      {corev1.Pod{ObjectMeta: ofKind("ReplicaSet")}, isEvicted, isDeleted},
		"an ending one is waited for":  {corev1.Pod{ObjectMeta: deleting}, ends, isDeleted},
		"one that ends slowly as well": {corev1.Pod{ObjectMeta: slow}, ends, isDeleted},
		"one that only a finalizer keeps is waited for, but not by force": {
			corev1.Pod{ObjectMeta: kept}, ends, stays,
		},
		"one of a DaemonSet stays": {corev1.Pod{ObjectMeta: ofKind("DaemonSet")}, stays, stays},
		"one of the kubelet stays": {
			corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, stays, stays,
		},
		"one that is done stays":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, stays, stays},
		"one that has failed stays": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, stays, stays},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(&tc.pod, false); got != tc.want {
				t.Errorf("without force: %d, want %d", got, tc.want)
			}
			if got := decide(&tc.pod, true); got != tc.force {
				t.Errorf("by force: %d, want %d", got, tc.force)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	if left := (Left{}); !left.Nothing() || left.Pods() || left.String() != "" {
		t.Errorf("nothing is %q", left)
	}
	left := Left{Ending: []string{"b", "a", "c", "d", "e", "f", "g"}, Refused: []string{"x (no)"}, Volumes: []string{"v"}}
	const want = "pods that are ending: a, b, c, d, e and 2 more; pods that cannot be evicted yet: x (no); volumes that are being detached: v"
	if got := left.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if left := (Left{Volumes: []string{"v"}}); left.Nothing() || left.Pods() {
		t.Error("volumes are nothing, or pods")
	}
}
