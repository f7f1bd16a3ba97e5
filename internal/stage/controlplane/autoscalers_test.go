package controlplane

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// After an update, a Deployment has no VerticalPodAutoscaler under its former name.
func TestFormerAutoscalersAreDeleted(t *testing.T) {
	clusters := stagetest.New(t)
	for name, target := range map[string]string{
		"kube-scheduler": "kube-scheduler", "kube-scheduler-vpa": "kube-scheduler", "vpn-seed-server": "vpn-seed-server",
	} {
		vpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"targetRef": map[string]any{"kind": "Deployment", "name": target}}}}
		vpa.SetGroupVersionKind(workload.AutoscalerKind)
		vpa.SetNamespace(stagetest.Namespace)
		vpa.SetName(name)
		vpa.SetLabels(map[string]string{workload.AutoscalerLabel: "true"})
		if err := clusters.Seed.Create(t.Context(), vpa); err != nil {
			t.Fatal(err)
		}
	}
	in := inputs(t, clusters, observedtest.State())
	in.Run.Autoscalers = func([]client.Object) []client.Object { return nil }
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "former-autoscalers"); err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workload.AutoscalerKind)
	if err := clusters.Seed.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	if slices.Sort(names); !slices.Equal(names, []string{"kube-scheduler-vpa", "vpn-seed-server"}) {
		t.Errorf("there are %q", names)
	}
}
