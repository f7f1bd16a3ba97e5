package criticalcomponents

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReady(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"os": "linux"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "node.gardener.cloud/critical-components-not-ready", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute},
		}},
	}
	set := func(spec corev1.PodSpec) appsv1.DaemonSet {
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"node.gardener.cloud/critical-component": "true"}}, Spec: spec}
		return appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "kube-system", UID: "uid"}, Spec: appsv1.DaemonSetSpec{Template: template}}
	}
	tolerant := corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}}
	unlabelled := set(tolerant)
	unlabelled.Spec.Template.Labels = nil
	elsewhere := *tolerant.DeepCopy()
	elsewhere.NodeSelector = map[string]string{"os": "windows"}
	pod := func(ready corev1.ConditionStatus, annotations map[string]string) []corev1.Pod {
		owner := *metav1.NewControllerRef(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "uid"}}, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
		return []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "d-x", Namespace: "kube-system", Annotations: annotations, OwnerReferences: []metav1.OwnerReference{owner}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}}
	}
	csi := map[string]string{"node.gardener.cloud/wait-for-csi-node-disk": "disk.csi.example"}
	registered := storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "disk.csi.example"}}}}
	for name, tc := range map[string]struct {
		sets    []appsv1.DaemonSet
		pods    []corev1.Pod
		drivers storagev1.CSINode
		want    string
	}{
		"nothing is critical":         {},
		"not scheduled":               {sets: []appsv1.DaemonSet{set(tolerant)}, want: `DaemonSet "d" of namespace "kube-system" has no pod on the node yet`},
		"without labelled pods":       {sets: []appsv1.DaemonSet{unlabelled}},
		"not for this node":           {sets: []appsv1.DaemonSet{set(elsewhere)}},
		"without toleration":          {sets: []appsv1.DaemonSet{set(corev1.PodSpec{})}},
		"not ready":                   {sets: []appsv1.DaemonSet{set(tolerant)}, pods: pod("False", nil), want: `Pod "d-x" is not ready`},
		"ready":                       {sets: []appsv1.DaemonSet{set(tolerant)}, pods: pod("True", nil)},
		"ready, its driver is not":    {pods: pod("True", csi), want: `driver "disk.csi.example" is not registered`},
		"ready, and so is its driver": {pods: pod("True", csi), drivers: registered},
	} {
		t.Run(name, func(t *testing.T) {
			err := ready(node, tc.sets, tc.pods, &tc.drivers)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("ready() is %v, want %q", err, tc.want)
			}
		})
	}
}
