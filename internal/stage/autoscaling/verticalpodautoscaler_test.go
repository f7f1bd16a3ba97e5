package autoscaling

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// It is deployed, stopped with the shoot, and deleted without a rest when the Shoot disables it.
func TestVerticalPodAutoscaler(t *testing.T) {
	c := seed(t, interceptor.Funcs{})
	in := VerticalInputs{
		Run: inputs(c).Run, Desired: true, Replicas: 2,
		Values: func(replicas int32) (verticalpodautoscaler.Values, error) {
			return verticalpodautoscaler.Values{
				Namespace: stagetest.Namespace, Replicas: replicas, ServerSecret: "server", Shoot: &verticalpodautoscaler.Shoot{GenericKubeconfig: "kubeconfig"},
			}, nil
		},
	}
	before := objects(t, c)
	run := func(id string) {
		t.Helper()
		if err := stagetest.RunTask(t.Context(), t, VerticalTasks(in), id); err != nil {
			t.Fatal(err)
		}
	}
	pods := func() map[string]int32 {
		t.Helper()
		list, pods := &appsv1.DeploymentList{}, map[string]int32{}
		if err := c.List(t.Context(), list, client.InNamespace(stagetest.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			pods[d.Name] = *d.Spec.Replicas
		}
		return pods
	}

	run("vpa")
	if diff := cmp.Diff(map[string]int32{"vpa-admission-controller": 2, "vpa-recommender": 2, "vpa-updater": 2}, pods()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if all := objects(t, c); !slices.Contains(all, "*v1alpha1.ManagedResource shoot-core-vpa") || len(all) < 14 {
		t.Errorf("objects are %q", all)
	}
	in.Hibernates = true
	run("stop-vpa")
	if diff := cmp.Diff(map[string]int32{"vpa-admission-controller": 0, "vpa-recommender": 0, "vpa-updater": 0}, pods()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	in.Desired = false
	for range 2 {
		run("stale-vpa")
		if diff := cmp.Diff(before, objects(t, c)); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	}
}
