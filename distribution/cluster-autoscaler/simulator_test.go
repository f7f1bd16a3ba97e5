package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

func node(name, zone string, change ...func(*corev1.Node)) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func pod(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "a"}},
		Spec: corev1.PodSpec{SchedulerName: "default-scheduler", Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func start(t *testing.T, nodes ...plan.Occupied) plan.Simulation {
	t.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "example.com/local", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "waits", UID: "1"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("local")},
	}
	client := fake.NewClientset(class, claim)
	factory := informers.NewSharedInformerFactory(client, 0)
	s, err := newSimulator(t.Context(), client, factory)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return s.Start(nodes)
}

func TestPlace(t *testing.T) {
	term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, TopologyKey: corev1.LabelHostname}
	alone := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: term.LabelSelector,
		}}
	}
	volume := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}}}
		}
	}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	full := plan.Occupied{Node: node("a", "z1"), Pods: []*corev1.Pod{pod("b", "3", func(p *corev1.Pod) { p.Spec.NodeName = "a" })}}
	empty := plan.Occupied{Node: node("b", "z2")}
	for name, tc := range map[string]struct {
		nodes []plan.Occupied
		pod   *corev1.Pod
		want  string // the node, or the reason
	}{
		"fits on the first":                 {nodes: []plan.Occupied{empty, full}, pod: pod("p", "1"), want: "b"},
		"the first has no room":             {nodes: []plan.Occupied{full, empty}, pod: pod("p", "2"), want: "b"},
		"no node has room":                  {nodes: []plan.Occupied{full}, pod: pod("p", "2"), want: "Insufficient cpu"},
		"no pod of its own kind beside it":  {nodes: []plan.Occupied{full, empty}, pod: pod("p", "100m", alone), want: "b"},
		"the zone has enough of its kind":   {nodes: []plan.Occupied{full, empty}, pod: pod("p", "100m", spread), want: "b"},
		"a taint that it does not tolerate": {nodes: []plan.Occupied{{Node: node("a", "z1", tainted)}}, pod: pod("p", "1"), want: "node(s) had untolerated taint(s)"},
		"another label": {
			nodes: []plan.Occupied{empty}, pod: pod("p", "1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "x"} }),
			want: "node(s) didn't match Pod's node affinity/selector",
		},
		"a volume that is created where the pod is": {nodes: []plan.Occupied{empty}, pod: pod("p", "1", volume("waits")), want: "b"},
		"a claim that does not exist":               {nodes: []plan.Occupied{empty}, pod: pod("p", "1", volume("none")), want: `persistentvolumeclaim "none" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, n := range tc.nodes {
				names = append(names, n.Node.Name)
			}
			got, err := start(t, tc.nodes...).Place(t.Context(), tc.pod, names)
			if err != nil {
				var notFit *plan.NotFit
				if !errors.As(err, &notFit) {
					t.Fatalf("not a *plan.NotFit: %v", err)
				}
				got = notFit.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Place() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForksAreIndependent(t *testing.T) {
	a := start(t, plan.Occupied{Node: node("a", "z1")})
	b := a.Fork()
	if got, err := b.Place(t.Context(), pod("p", "3"), []string{"a"}); got != "a" || err != nil {
		t.Fatalf("Place() in the fork = %q, %v", got, err)
	}
	if got, err := b.Place(t.Context(), pod("q", "3"), []string{"a"}); err == nil {
		t.Errorf("a second pod was placed on %q, which is full", got)
	}
	if got, err := a.Place(t.Context(), pod("q", "3"), []string{"a"}); got != "a" || err != nil {
		t.Errorf("Place() in the original = %q, %v", got, err)
	}
	b.Add(plan.Occupied{Node: node("b", "z1")})
	b.Remove("a")
	if got, err := b.Place(t.Context(), pod("r", "3"), []string{"a", "b"}); got != "b" || err != nil {
		t.Errorf("Place() after a was removed = %q, %v", got, err)
	}
}

func TestManyPods(t *testing.T) {
	s := start(t)
	var names []string
	term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, TopologyKey: corev1.LabelHostname}
	for i := range 200 {
		p := pod(fmt.Sprint("p", i), "1", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		})
		if _, err := s.Place(t.Context(), p, names); err == nil {
			t.Fatalf("pod %d fits beside another one", i)
		}
		name := fmt.Sprint("n", i)
		s.Add(plan.Occupied{Node: node(name, "z1")})
		names = append(names, name)
		if _, err := s.Place(t.Context(), p, names[i:]); err != nil {
			t.Fatal(err)
		}
	}
}

// Small pods that have to be spread over zones need one new node per zone: one that is on a new node makes room on those of other zones again.
func TestPodsThatAreSpreadOverZones(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, pod(fmt.Sprintf("p%02d", i), "100m", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
			}}
		}))
	}
	in := plan.UpInput{Pods: pods, Balance: true, Timeout: time.Minute, Clock: clock.RealClock{}}
	want := map[string]int{}
	var full []plan.Occupied
	for _, zone := range []string{"z1", "z2", "z3"} {
		full = append(full, plan.Occupied{Node: node("full-"+zone, zone), Pods: []*corev1.Pod{pod("full-"+zone, "4", func(p *corev1.Pod) { p.Labels = nil })}})
		in.Groups = append(in.Groups, &plan.Group{Name: zone, Max: 9, Template: plan.Occupied{Node: node("template-"+zone, zone)}})
		want[zone] = 1
	}
	in.Cluster = start(t, full...)
	got, err := plan.Up(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Increases); diff != "" {
		t.Errorf("increases (-want +got):\n%s", diff)
	}
}
