package plan

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is a simulation that looks at CPU and node selectors. What the scheduler looks at besides is tested with the scheduler.
type cluster struct {
	nodes map[string]*corev1.Node
	used  map[string]float64
}

func simulate(nodes ...Occupied) *cluster {
	c := &cluster{nodes: map[string]*corev1.Node{}, used: map[string]float64{}}
	for _, n := range nodes {
		c.Add(n)
	}
	return c
}

func (c *cluster) Fork() Simulation {
	return &cluster{nodes: maps.Clone(c.nodes), used: maps.Clone(c.used)}
}

func (c *cluster) Add(n Occupied) {
	c.nodes[n.Node.Name] = n.Node
	for _, p := range n.Pods {
		c.used[n.Node.Name] += cpuOf(p)
	}
}

func (c *cluster) Remove(name string) { delete(c.nodes, name); delete(c.used, name) }

func (c *cluster) Place(_ context.Context, p *corev1.Pod, names []string) (string, error) {
	reason := &NotFit{}
	for _, name := range names {
		n, ok := c.nodes[name]
		if !ok {
			continue
		}
		matches := true
		for key, value := range p.Spec.NodeSelector {
			matches = matches && n.Labels[key] == value
		}
		switch {
		case !matches:
			reason.Reasons = []string{"other labels"}
		case c.used[name]+cpuOf(p) > quantityOf(n, corev1.ResourceCPU):
			reason.Reasons = []string{"Insufficient cpu"}
		default:
			c.used[name] += cpuOf(p)
			return name, nil
		}
	}
	return "", reason
}

func cpuOf(p *corev1.Pod) float64 {
	quantity := requests(p)[corev1.ResourceCPU]
	return quantity.AsApproximateFloat64()
}

func nodeOf(name, cpu string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("8Gi"),
	}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

func podOf(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{
			{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)},
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func podsOf(n int, cpu string, change ...func(*corev1.Pod)) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, podOf(fmt.Sprintf("p%02d", i), cpu, change...))
	}
	return out
}

func groupOf(name, cpu string, target, maximum int, change ...func(*Group)) *Group {
	g := &Group{Name: name, Target: target, Max: maximum, Template: Occupied{Node: nodeOf("template-"+name, cpu, "pool", name)}, Options: Options{
		UtilizationThreshold: 0.5, GPUUtilizationThreshold: 0.5, UnneededTime: 30 * time.Minute, UnreadyTime: 20 * time.Minute,
	}}
	for _, f := range change {
		f(g)
	}
	return g
}

func zone(pool, zone string) func(*Group) {
	return func(g *Group) { g.Template.Node = nodeOf("t", "4", "pool", pool, corev1.LabelTopologyZone, zone) }
}

func selects4(pool string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": pool} }
}

func TestUp(t *testing.T) {
	for name, tc := range map[string]struct {
		groups   []*Group
		nodes    []Occupied
		pods     []*corev1.Pod
		expander []string
		input    func(*UpInput)
		want     map[string]int
		refused  string // of the first pod that is refused
		waiting  int
	}{
		"no pods": {groups: []*Group{groupOf("a", "4", 1, 5)}, want: map[string]int{}},
		"60 pods of 300m need 5 nodes": {
			groups: []*Group{groupOf("a", "4", 0, 9)}, pods: podsOf(60, "300m"), want: map[string]int{"a": 5},
		},
		"the maximum is kept, and the rest is told why": {
			groups: []*Group{groupOf("a", "4", 1, 3)}, pods: podsOf(12, "1"), want: map[string]int{"a": 2}, refused: "1 max node group size reached",
		},
		"room on a node that exists": {
			groups: []*Group{groupOf("a", "4", 1, 3)}, nodes: []Occupied{{Node: nodeOf("n", "4")}}, pods: podsOf(4, "1"), want: map[string]int{}, waiting: 4,
		},
		"room on a node that is on its way": {
			groups: []*Group{groupOf("a", "4", 1, 3, func(g *Group) { g.Upcoming = 1 })}, pods: podsOf(5, "1"), want: map[string]int{"a": 1}, waiting: 4,
		},
		"pods of DaemonSets need room too": {
			groups: []*Group{groupOf("a", "4", 0, 9, func(g *Group) { g.Template.Pods = podsOf(1, "1") })}, pods: podsOf(4, "1"), want: map[string]int{"a": 2},
		},
		"too large for any node": {
			groups: []*Group{groupOf("a", "4", 0, 9), groupOf("b", "8", 0, 9)}, pods: podsOf(1, "9"), want: map[string]int{}, refused: "2 Insufficient cpu",
		},
		"only one group fits": {
			groups: []*Group{groupOf("a", "4", 0, 9), groupOf("b", "4", 0, 9)}, pods: podsOf(1, "1", selects4("b")), want: map[string]int{"b": 1},
		},
		"two groups grow in one scan": {
			groups: []*Group{groupOf("a", "4", 0, 9), groupOf("b", "4", 0, 9)},
			pods:   []*corev1.Pod{podOf("x", "1", selects4("a")), podOf("y", "1", selects4("b"))}, want: map[string]int{"a": 1, "b": 1},
		},
		"a group that rests": {
			groups: []*Group{groupOf("a", "4", 0, 9, func(g *Group) { g.Refuses = "in backoff after failed scale-up" }), groupOf("b", "8", 0, 9)},
			pods:   podsOf(2, "1"), want: map[string]int{"b": 1},
		},
		"a group without a template": {
			groups: []*Group{groupOf("a", "4", 0, 9, func(g *Group) { g.Template.Node = nil })}, pods: podsOf(2, "1"), want: map[string]int{},
			refused: "1 no template of a node",
		},
		"all nodes together": {
			groups: []*Group{groupOf("a", "4", 1, 9)}, pods: podsOf(12, "1"), input: func(in *UpInput) { in.Total, in.MaxTotal = 3, 5 },
			want: map[string]int{"a": 2}, refused: "1 max total nodes in cluster reached",
		},
		"least waste": {
			groups: []*Group{groupOf("a", "16", 0, 9), groupOf("b", "4", 0, 9)}, pods: podsOf(3, "1"), expander: []string{LeastWaste}, want: map[string]int{"b": 1},
		},
		"most pods": {
			groups: []*Group{groupOf("a", "2", 0, 1), groupOf("b", "4", 0, 1)}, pods: podsOf(4, "1"), expander: []string{MostPods}, want: map[string]int{"b": 1},
		},
		"least nodes": {
			groups: []*Group{groupOf("a", "16", 0, 9), groupOf("b", "4", 0, 9)}, pods: podsOf(8, "1"), expander: []string{LeastNodes}, want: map[string]int{"a": 1},
		},
		"priority before waste": {
			groups: []*Group{groupOf("a", "16", 0, 9), groupOf("b", "4", 0, 9)}, pods: podsOf(3, "1"), expander: []string{Priority, LeastWaste},
			input: func(in *UpInput) { in.Expander.Priorities = Priorities{10: {regexp.MustCompile("^a$")}} }, want: map[string]int{"a": 1},
		},
		"zones are balanced": {
			groups: []*Group{groupOf("z1", "4", 0, 9, zone("p", "1")), groupOf("z2", "4", 2, 9, zone("p", "2")), groupOf("z3", "4", 0, 9, zone("p", "3"))},
			pods:   podsOf(20, "1"), input: func(in *UpInput) { in.Balance = true }, want: map[string]int{"z1": 3, "z3": 2},
		},
		"a zone that is full leaves it to the others": {
			groups: []*Group{groupOf("z1", "4", 0, 1, zone("p", "1")), groupOf("z2", "4", 0, 9, zone("p", "2"))},
			pods:   podsOf(12, "1"), input: func(in *UpInput) { in.Balance = true }, want: map[string]int{"z1": 1, "z2": 2},
		},
		"pools are not balanced": {
			groups: []*Group{groupOf("a", "4", 0, 9), groupOf("b", "4", 3, 9)}, pods: podsOf(8, "1", selects4("b")),
			input: func(in *UpInput) { in.Balance = true }, want: map[string]int{"b": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := UpInput{
				Groups: tc.groups, Pods: tc.pods, Cluster: simulate(tc.nodes...), Timeout: time.Minute, Clock: clocktesting.NewFakePassiveClock(now),
				Expander: Expander{Names: tc.expander, Intn: rand.IntN},
			}
			for _, n := range tc.nodes {
				in.Nodes = append(in.Nodes, n.Node.Name)
			}
			if tc.input != nil {
				tc.input(&in)
			}
			got, err := Up(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Increases); diff != "" {
				t.Errorf("increases (-want +got):\n%s", diff)
			}
			refused := ""
			for _, reason := range got.Refused {
				refused = reason
			}
			waiting := 0
			for _, pods := range got.Waiting {
				waiting += len(pods)
			}
			if refused != tc.refused || waiting != tc.waiting {
				t.Errorf("refused %q, waiting %d; want %q, %d", refused, waiting, tc.refused, tc.waiting)
			}
			if sum := waiting + len(got.Triggered) + len(got.Refused); sum != len(tc.pods) {
				t.Errorf("the plan has %d of %d pods", sum, len(tc.pods))
			}
		})
	}
}

func TestDown(t *testing.T) {
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
	annotated := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
	}
	labelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }
	system := func(p *corev1.Pod) { p.Namespace = "kube-system" }
	local := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	budget := func(allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	healthy := func(current, desired int32) *policyv1.PodDisruptionBudget {
		b := budget(0)
		b.Status.CurrentHealthy, b.Status.DesiredHealthy = current, desired
		return b
	}
	isReady := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	long, short := now.Add(-time.Hour), now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		pods   map[string][]*corev1.Pod // by node: n0 to n3 have 4 CPUs each
		group  func(*Group)
		change func(*Candidate)
		since  map[string]time.Time
		input  func(*DownInput)
		idle   []string
		remove []string
		kept   map[string]string // some of them
	}{
		"all idle, but for the minimum": {
			group: func(g *Group) { g.Min = 1 }, since: map[string]time.Time{"n0": long, "n1": long, "n2": long, "n3": long},
			idle: []string{"n0", "n1", "n2"}, remove: []string{"n0", "n1", "n2"}, kept: map[string]string{"n3": "its group has its minimum size"},
		},
		"two budgets, so that the pod cannot be evicted": {
			pods:  map[string][]*corev1.Pod{"n0": {podOf("p", "1", labelled)}},
			since: map[string]time.Time{"n0": long},
			input: func(in *DownInput) { in.Budgets = []*policyv1.PodDisruptionBudget{budget(1), budget(1)} },
			idle:  []string{"n1", "n2", "n3"}, kept: map[string]string{"n0": "pod default/p has more than one PodDisruptionBudget"},
		},
		"two budgets of a pod that has not started": {
			pods:  map[string][]*corev1.Pod{"n0": {podOf("p", "1", labelled, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}},
			since: map[string]time.Time{"n0": long},
			input: func(in *DownInput) { in.Budgets = []*policyv1.PodDisruptionBudget{budget(1), budget(1)} },
			idle:  []string{"n0", "n1", "n2"}, remove: []string{"n0"},
		},
		"nodes that are drained count against the minimum": {group: func(g *Group) { g.Min, g.Draining = 2, 1 }, idle: []string{"n0"}},
		"not for long enough": {
			since:  map[string]time.Time{"n0": short, "n1": long},
			idle:   []string{"n0", "n1", "n2", "n3"},
			remove: []string{"n1"},
		},
		"an own time of the group": {
			group:  func(g *Group) { g.Options.UnneededTime = time.Second },
			since:  map[string]time.Time{"n0": short},
			idle:   []string{"n0", "n1", "n2", "n3"},
			remove: []string{"n0"},
		},
		"two at a time": {
			since: map[string]time.Time{"n0": long, "n1": long, "n2": long, "n3": long}, input: func(in *DownInput) { in.Rules.MaxEmpty = 2 },
			idle: []string{"n0", "n1", "n2", "n3"}, remove: []string{"n0", "n1"},
		},
		"three at a time, also if they are empty": {
			since: map[string]time.Time{"n0": long, "n1": long, "n2": long, "n3": long}, input: func(in *DownInput) { in.Rules.MaxEmpty, in.Rules.MaxTotal = 0, 3 },
			idle: []string{"n0", "n1", "n2", "n3"}, remove: []string{"n0", "n1", "n2"},
		},
		"some are being removed": {
			since: map[string]time.Time{"n0": long, "n1": long, "n2": long, "n3": long}, input: func(in *DownInput) { in.Rules.MaxTotal, in.RemovingEmpty = 4, 3 },
			idle: []string{"n0", "n1", "n2", "n3"}, remove: []string{"n0"},
			kept: map[string]string{"n0": "", "n1": "as many nodes as allowed are being removed"},
		},
		"while machines are replaced": {
			group: func(g *Group) { g.Rolling = true },
			kept:  map[string]string{"n0": "the machines of its group are being replaced"},
		},
		"the annotation": {
			change: func(c *Candidate) { c.Node.Annotations = map[string]string{ScaleDownDisabled: "true"} },
			kept:   map[string]string{"n0": "it has the annotation " + ScaleDownDisabled},
		},
		"in use": {
			pods: map[string][]*corev1.Pod{"n0": podsOf(2, "1"), "n1": podsOf(3, "1"), "n2": podsOf(4, "1"), "n3": podsOf(4, "1")},
			kept: map[string]string{"n0": "50 % of it are requested"},
		},
		"DaemonSets need no room elsewhere": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", daemon)},
			group: func(g *Group) { g.Min = 0 },
			idle:  []string{"n0", "n1", "n2", "n3"},
		},
		"DaemonSets use the node": {pods: map[string][]*corev1.Pod{"n0": podsOf(1, "3", daemon)}, idle: []string{"n1", "n2", "n3"}},
		"DaemonSets are ignored": {
			pods: map[string][]*corev1.Pod{"n0": podsOf(1, "3", daemon)}, input: func(in *DownInput) { in.Rules.IgnoreDaemonSets = true }, idle: []string{"n0", "n1", "n2", "n3"},
		},
		"pods are moved, one node at a time": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1"), "n1": podsOf(1, "1"), "n2": podsOf(4, "1"), "n3": podsOf(3, "1")},
			since: map[string]time.Time{"n0": long, "n1": long}, idle: []string{"n0"}, remove: []string{"n0"},
			kept: map[string]string{"n1": "pod default/p00 fits on no other node"},
		},
		"a pod is about to be scheduled to it": {
			input: func(in *DownInput) { in.Waiting = map[string][]*corev1.Pod{"n0": podsOf(1, "1")} }, idle: []string{"n1", "n2", "n3"},
			kept: map[string]string{"n0": "pods are about to be scheduled to it"},
		},
		"two nodes with pods, but one is drained at a time": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1"), "n1": podsOf(1, "1"), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			since: map[string]time.Time{"n0": long, "n1": long}, idle: []string{"n0", "n1"}, remove: []string{"n0"},
		},
		"safe-to-evict=false": {
			pods: map[string][]*corev1.Pod{"n0": podsOf(1, "1", annotated(SafeToEvict, "false"))},
			idle: []string{"n1", "n2", "n3"},
			kept: map[string]string{"n0": "pod default/p00 has the annotation " + SafeToEvict + "=false"},
		},
		"without a controller": {
			pods: map[string][]*corev1.Pod{"n0": podsOf(1, "1", func(p *corev1.Pod) { p.OwnerReferences = nil })},
			idle: []string{"n1", "n2", "n3"},
			kept: map[string]string{"n0": "pod default/p00 has no controller that would create it again"},
		},
		"safe without one": {
			pods: map[string][]*corev1.Pod{"n0": podsOf(1, "1", func(p *corev1.Pod) { p.OwnerReferences = nil }, annotated(SafeToEvict, "true")), "n1": podsOf(2, "1")},
			idle: []string{"n0", "n2", "n3"},
		},
		"system pods": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", system)},
			input: func(in *DownInput) { in.Rules.KeepSystemPods = true },
			idle:  []string{"n1", "n2", "n3"},
		},
		"local storage": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", local)},
			input: func(in *DownInput) { in.Rules.KeepLocalStorage = true },
			idle:  []string{"n1", "n2", "n3"},
			kept:  map[string]string{"n0": `pod default/p00 has local storage in volume "v"`},
		},
		"local storage is safe": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", local, annotated(SafeToEvictLocalVolumes, "v")), "n1": podsOf(2, "1")},
			input: func(in *DownInput) { in.Rules.KeepLocalStorage = true },
			idle:  []string{"n0", "n2", "n3"},
		},
		"min replicas": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1")},
			input: func(in *DownInput) { in.Rules.MinReplicas = 3 },
			idle:  []string{"n1", "n2", "n3"},
			kept:  map[string]string{"n0": "pod default/p00 has a controller with 2 replicas only"},
		},
		"a budget forbids it": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", labelled)},
			input: func(in *DownInput) { in.Budgets = append(in.Budgets, budget(0)) },
			idle:  []string{"n1", "n2", "n3"},
			kept:  map[string]string{"n0": "a PodDisruptionBudget of its pods allows no disruption"},
		},
		"a budget for one of two nodes": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", labelled), "n1": podsOf(1, "1", labelled), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			input: func(in *DownInput) { in.Budgets, in.Rules.MaxDrained = append(in.Budgets, budget(1)), 5 },
			since: map[string]time.Time{"n0": long, "n1": long}, idle: []string{"n0", "n1"}, remove: []string{"n0"},
		},
		"a pod that is not ready, and a budget whose application has enough without it": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", labelled), "n1": podsOf(2, "1"), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			input: func(in *DownInput) { in.Budgets = append(in.Budgets, healthy(2, 2)) }, idle: []string{"n0"},
		},
		"a pod that is not ready, and a budget whose application has not enough": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", labelled), "n1": podsOf(2, "1"), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			input: func(in *DownInput) { in.Budgets = append(in.Budgets, healthy(1, 2)) },
			kept:  map[string]string{"n0": "a PodDisruptionBudget of its pods allows no disruption"},
		},
		"a pod that is ready, and a budget whose application has just enough": {
			pods:  map[string][]*corev1.Pod{"n0": podsOf(1, "1", labelled, isReady), "n1": podsOf(2, "1"), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			input: func(in *DownInput) { in.Budgets = append(in.Budgets, healthy(2, 2)) },
			kept:  map[string]string{"n0": "a PodDisruptionBudget of its pods allows no disruption"},
		},
		"not ready is removed however full": {
			pods:   map[string][]*corev1.Pod{"n0": podsOf(3, "1", daemon), "n1": podsOf(2, "1"), "n2": podsOf(2, "1"), "n3": podsOf(2, "1")},
			change: func(c *Candidate) { c.Ready = c.Node.Name != "n0" }, since: map[string]time.Time{"n0": now.Add(-25 * time.Minute)}, idle: []string{"n0"}, remove: []string{"n0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupOf("a", "4", 4, 9)
			if tc.group != nil {
				tc.group(g)
			}
			in := DownInput{
				Now: now, Since: tc.since, Rules: Rules{MaxEmpty: 10, MaxTotal: 10, MaxDrained: 1}, Replicas: func(*corev1.Pod) (int, bool) { return 2, true },
			}
			c := simulate()
			for i := range 4 {
				candidate := Candidate{Group: g, Ready: true, Occupied: Occupied{Node: nodeOf(fmt.Sprint("n", i), "4")}}
				candidate.Pods = tc.pods[candidate.Node.Name]
				if tc.change != nil {
					tc.change(&candidate)
				}
				c.Add(candidate.Occupied)
				in.Candidates, in.Destinations = append(in.Candidates, candidate), append(in.Destinations, candidate.Node.Name)
			}
			in.Cluster = c
			if tc.input != nil {
				tc.input(&in)
			}
			got, err := Down(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			var remove []string
			for _, r := range got.Remove {
				remove = append(remove, r.Node.Name)
			}
			if diff := cmp.Diff(tc.idle, slices.Sorted(maps.Keys(got.Since))); diff != "" {
				t.Errorf("idle nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remove, remove); diff != "" {
				t.Errorf("removed nodes (-want +got):\n%s", diff)
			}
			for node, reason := range tc.kept {
				if got.Kept[node] != reason {
					t.Errorf("%s is kept because %q, want %q", node, got.Kept[node], reason)
				}
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Initial: 5 * time.Minute, Max: 8 * time.Minute, Reset: time.Hour}
	at := now
	for _, want := range []time.Duration{5 * time.Minute, 8 * time.Minute, 8 * time.Minute} {
		b.Fail("a", "why", at)
		b.Fail("a", "again", at.Add(time.Second)) // it rests already
		until, reason := b.Resting("a", at)
		if until.Sub(at) != want || reason != "why" {
			t.Errorf("it rests for %s because %q, want %s", until.Sub(at), reason, want)
		}
		at = until
		if until, _ := b.Resting("a", at); !until.IsZero() {
			t.Errorf("it still rests until %s", until)
		}
	}
	at = at.Add(2 * time.Hour)
	b.Fail("a", "why", at)
	if until, _ := b.Resting("a", at); until.Sub(at) != 5*time.Minute {
		t.Errorf("after a long time it rests for %s", until.Sub(at))
	}
	b.Succeed("a")
	if until, _ := b.Resting("a", at); !until.IsZero() {
		t.Errorf("it rests until %s after a success", until)
	}
}

// The original matches "pool-z1" with "pool-z10", too.
func TestPrioritiesMatchWholeNames(t *testing.T) {
	p, err := ParsePriorities("20:\n- pool-z1\n10:\n- pool-.*\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"pool-z1": 20, "pool-z10": 10, "other": 0} {
		g := groupOf(name, "4", 0, 1)
		if got := p.of(&Option{Groups: []*Group{g}, Increases: map[string]int{name: 1}}); got != want {
			t.Errorf("the priority of %s is %d, want %d", name, got, want)
		}
	}
	for _, text := range []string{"x: [a]", "1: ['(']", "1: a"} {
		if _, err := ParsePriorities(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestRequests(t *testing.T) {
	cpu := func(s string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Resources: cpu("1"), RestartPolicy: &always}, {Resources: cpu("5")}},
		Containers:     []corev1.Container{{Resources: cpu("1")}, {Resources: cpu("1")}},
		Overhead:       corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}
	if got := cpuOf(p); math.Abs(got-6.1) > 1e-9 {
		t.Errorf("%v CPUs, want 6.1: what an init container needs beside a sidecar", got)
	}
}
