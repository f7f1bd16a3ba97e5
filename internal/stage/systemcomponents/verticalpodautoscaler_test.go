package systemcomponents

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/component/workload"
)

func TestDeleteVerticalPodAutoscalers(t *testing.T) {
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"vpaObjectName": "etcd"}}}
		u.SetGroupVersionKind(workload.AutoscalerKind.GroupVersion().WithKind(kind))
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	own, foreign := object("VerticalPodAutoscaler", "shoot--a--b", "etcd"), object("VerticalPodAutoscaler", "elsewhere", "etcd")
	own.SetLabels(map[string]string{workload.AutoscalerLabel: "true"})
	c := fake.NewClientBuilder().WithObjects(own, foreign,
		object("VerticalPodAutoscalerCheckpoint", "shoot--a--b", "etcd-x"), object("VerticalPodAutoscalerCheckpoint", "elsewhere", "etcd-x")).Build()
	if err := deleteVerticalPodAutoscalers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"} {
		left, err := listVPAKind(t.Context(), c, kind)
		if err != nil || len(left) != 1 || left[0].GetNamespace() != "elsewhere" {
			t.Errorf("%d objects of kind %s are left, want that of another namespace: %v", len(left), kind, err)
		}
	}
}
