package deletion

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The garbage collector removes the owners of pods, as their ReplicaSets are deleted without them. What is no pod of a Deployment may be a machine.
func TestStopAPIServer(t *testing.T) {
	labels := maps.Clone(kubeapiserver.Labels())
	labels["pod-template-hash"] = "1"
	etcd := metav1.ObjectMeta{Name: "etcd", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "etcd", Controller: new(true)}}}
	seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
	for _, meta := range []metav1.ObjectMeta{{Name: "released", Labels: labels}, {Name: "machine"}, etcd} {
		meta.Namespace = stagetest.Namespace
		if err := seed.Create(t.Context(), &corev1.Pod{ObjectMeta: meta}); err != nil {
			t.Fatal(err)
		}
	}
	in := Inputs{Run: &stage.Run{SeedAPI: seed, Namespace: stagetest.Namespace}}
	if err := in.stopAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := &corev1.PodList{}
	if err := seed.List(t.Context(), left, client.InNamespace(stagetest.Namespace)); err != nil || len(left.Items) != 2 {
		t.Errorf("%d pods are left, want etcd and the machine (%v)", len(left.Items), err)
	}
}
