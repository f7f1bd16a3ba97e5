package landscape

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsReady(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}
		if phase == corev1.PodRunning {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return pod
	}
	evicted := pod("evicted", corev1.PodFailed)
	evicted.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "a", Controller: new(true)}}
	leaving := pod("leaving", corev1.PodPending)
	leaving.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"none yet":                             {want: "there are no system pods yet"},
		"all are ready":                        {pods: []*corev1.Pod{pod("a", corev1.PodRunning), pod("b", corev1.PodRunning)}},
		"one is not":                           {pods: []*corev1.Pod{pod("b", corev1.PodPending), pod("a", corev1.PodRunning)}, want: `1 of 2 system pods are ready; Pod "b" is not ready`},
		"one was evicted and is replaced by b": {pods: []*corev1.Pod{evicted, pod("b", corev1.PodRunning)}},
		"one is being deleted":                 {pods: []*corev1.Pod{leaving, pod("b", corev1.PodRunning)}},
		"one has failed and has no controller": {pods: []*corev1.Pod{pod("a", corev1.PodFailed), pod("b", corev1.PodRunning)}, want: `1 of 2 system pods are ready; Pod "a" is not ready`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := podsReady(tc.pods); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
