package system

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/test/golden"
)

func TestFlows(t *testing.T) {
	r := &reconciler{}
	for name, spec := range map[string]corev1beta1.SeedSpec{
		"plain": {}, "backup": {Backup: &corev1beta1.Backup{}},
		"autoscaled": {Settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}},
	} {
		f, err := r.newFlow(&corev1beta1.Seed{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		golden.Text(t, "flows/"+name+".txt", f.String())
	}
	f, err := r.newDeletion(&corev1beta1.Seed{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion.txt", f.String())
}

func TestAllocatable(t *testing.T) {
	got := allocatable(corev1.ResourceList{"shoots": resource.MustParse("10")}, corev1.ResourceList{"shoots": resource.MustParse("2"), "other": resource.MustParse("1")})
	if diff := cmp.Diff(corev1.ResourceList{"shoots": resource.MustParse("8")}, got); diff != "" {
		t.Errorf("allocatable() (-want +got):\n%s", diff)
	}
}

func TestUnfinished(t *testing.T) {
	mine := corev1beta1.Gardener{Version: "v2"}
	done := corev1beta1.SeedStatus{
		LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}, ObservedGeneration: 3, Gardener: &mine,
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.SeedStatus)
		want   bool
	}{
		"done":                  {change: func(*corev1beta1.SeedStatus) {}},
		"new":                   {change: func(s *corev1beta1.SeedStatus) { *s = corev1beta1.SeedStatus{} }, want: true},
		"changed":               {change: func(s *corev1beta1.SeedStatus) { s.ObservedGeneration = 2 }, want: true},
		"failed":                {change: func(s *corev1beta1.SeedStatus) { s.LastOperation.State = corev1beta1.LastOperationStateError }, want: true},
		"of an older gardenlet": {change: func(s *corev1beta1.SeedStatus) { s.Gardener.Version = "v1" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Status: *done.DeepCopy()}
			seed.Generation = 3
			tc.change(&seed.Status)
			if got := unfinished(seed, mine); got != tc.want {
				t.Errorf("unfinished() is %t", got)
			}
		})
	}
}

// TestComponents compares what care looks at with all that is deployed: every Deployment and every load balancer.
func TestComponents(t *testing.T) {
	for name, scaled := range map[string]bool{"plain": false, "autoscaled": true} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{
				VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: scaled},
			}}}
			r := &reconciler{}
			_, deployed, err := r.resourceManagerObjects(1, &credentials{server: "any"})
			if err != nil {
				t.Fatal(err)
			}
			druid, err := r.etcdDruidObjects(1)
			if err != nil {
				t.Fatal(err)
			}
			deployed = slices.Concat(deployed, druid, r.gatewayObjects(seed, 1))
			if scaled {
				autoscaler, err := r.autoscalerObjects(seed, 1, &credentials{autoscaler: "any"})
				if err != nil {
					t.Fatal(err)
				}
				deployed = append(deployed, autoscaler...)
			}
			want, got := map[string]bool{}, map[string]bool{}
			for _, object := range deployed {
				service, ok := object.(*corev1.Service)
				if _, deployment := object.(*appsv1.Deployment); deployment || ok && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
					want[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
				}
			}
			for _, object := range Components(seed) {
				got[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Components() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAutoscalersAreRemoved(t *testing.T) {
	object := func(kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"vpaObjectName": "ours"}}}
		u.SetGroupVersionKind(workload.AutoscalerKind.GroupVersion().WithKind(kind))
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	ours, foreign := object("VerticalPodAutoscaler", "shoot--a--b", "ours"), object("VerticalPodAutoscaler", "elsewhere", "ours")
	ours.SetLabels(map[string]string{workload.AutoscalerLabel: "true"})
	c := fake.NewClientBuilder().WithObjects(ours, foreign,
		object("VerticalPodAutoscalerCheckpoint", "shoot--a--b", "ours-x"), object("VerticalPodAutoscalerCheckpoint", "elsewhere", "ours-x")).Build()
	if err := removeAutoscalers(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"} {
		left, err := autoscalingObjects(t.Context(), c, kind)
		if err != nil || len(left) != 1 || left[0].GetNamespace() != "elsewhere" {
			t.Errorf("of kind %s there are %d left, %v", kind, len(left), err)
		}
	}
}
