package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

const (
	reasonMaximum  = "max node group size reached"
	reasonTotal    = "max total nodes in cluster reached"
	reasonTemplate = "no template of a node"
	reasonTime     = "max binpacking time exceeded"
)

// UpInput is what decides which groups grow.
type UpInput struct {
	// Groups are all groups.
	Groups []*Group
	// Pods are those that the scheduler found no node for.
	Pods []*corev1.Pod
	// Cluster is the cluster as it is, without nodes that are being removed. Pods that need no further node are placed in it.
	Cluster Simulation
	// Nodes are the names of nodes in the cluster that pods may be scheduled to.
	Nodes []string
	// Expander chooses among several ways.
	Expander Expander
	// Balance keeps groups that only differ in their zone at the same size.
	Balance bool
	// Total is the number of nodes that exist or are requested, and MaxTotal how many there may be; 0 means no limit.
	Total, MaxTotal int
	// Timeout is how long it may take, and Clock measures that.
	Timeout time.Duration
	Clock   clock.PassiveClock
}

// UpPlan is which groups grow.
type UpPlan struct {
	// Increases are how many nodes each group gets.
	Increases map[string]int
	// Triggered are the pods for which groups grow, with the names of the groups, in order.
	Triggered map[*corev1.Pod][]string
	// Refused are the pods that no further node would help, with the reason.
	Refused map[*corev1.Pod]string
	// Waiting are the pods that fit on nodes which exist or are requested already, by node.
	Waiting map[string][]*corev1.Pod
	// Upcoming are the names of requested nodes in the simulation.
	Upcoming []string
}

// Option is one way to get nodes for pods: groups that are alike grow together.
type Option struct {
	// Groups are the groups, sorted by name.
	Groups []*Group
	// Increases are how many nodes each of them gets.
	Increases map[string]int
	// Nodes are the new nodes.
	Nodes []Occupied
	// Pods are those that are scheduled to them.
	Pods []*corev1.Pod
	// reasons say why other pods are not.
	reasons map[string]string
	after   Simulation
}

// Up decides which groups grow, so that pods can be scheduled.
func Up(ctx context.Context, in UpInput) (UpPlan, error) {
	out := UpPlan{Increases: map[string]int{}, Triggered: map[*corev1.Pod][]string{}, Refused: map[*corev1.Pod]string{}, Waiting: map[string][]*corev1.Pod{}}
	end := in.Clock.Now().Add(in.Timeout)
	for _, g := range in.Groups {
		for i := 0; i < g.Upcoming && g.Template.Node != nil; i++ {
			node := g.instance(fmt.Sprintf("requested-%s-%d", g.Name, i))
			in.Cluster.Add(node)
			out.Upcoming = append(out.Upcoming, node.Node.Name)
		}
	}
	keys := map[*corev1.Pod]string{}
	for _, pod := range in.Pods {
		keys[pod] = kindOf(pod)
	}
	pending, err := in.place(ctx, &out, keys)
	if err != nil {
		return out, err
	}
	for len(pending) > 0 {
		options, refused, err := in.options(ctx, pending, keys, out.Increases, end)
		if err != nil {
			return out, err
		}
		if len(options) == 0 {
			for _, pod := range pending {
				out.Refused[pod] = refused(keys[pod])
			}
			break
		}
		best := in.Expander.Best(options)
		in.Cluster = best.after
		var names []string
		for _, g := range best.Groups {
			if n := best.Increases[g.Name]; n > 0 {
				out.Increases[g.Name] += n
				names = append(names, g.Name)
			}
		}
		for _, pod := range best.Pods {
			out.Triggered[pod] = names
		}
		pending = slices.DeleteFunc(pending, func(pod *corev1.Pod) bool { return out.Triggered[pod] != nil })
	}
	return out, nil
}

// place places the pods that fit on nodes which exist or are requested, and returns the others.
func (in UpInput) place(ctx context.Context, out *UpPlan, keys map[*corev1.Pod]string) ([]*corev1.Pod, error) {
	names := append(slices.Clone(in.Nodes), out.Upcoming...)
	var pending []*corev1.Pod
	full := map[string]bool{}
	for _, pod := range in.Pods {
		if full[keys[pod]] {
			pending = append(pending, pod)
			continue
		}
		node, err := in.Cluster.Place(ctx, pod, names)
		var notFit *NotFit
		switch {
		case errors.As(err, &notFit):
			full[keys[pod]] = true
			pending = append(pending, pod)
		case err != nil:
			return nil, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
		default:
			out.Waiting[node] = append(out.Waiting[node], pod)
		}
	}
	return pending, nil
}

// options returns the ways to get nodes for some of the pods, and a function that says why there is none for pods of a kind.
func (in UpInput) options(
	ctx context.Context, pods []*corev1.Pod, keys map[*corev1.Pod]string, increases map[string]int, end time.Time,
) ([]*Option, func(kind string) string, error) {
	var options []*Option
	var all []map[string]string
	for _, family := range in.families() {
		option, err := in.estimate(ctx, family, pods, keys, increases, end)
		if err != nil {
			return nil, nil, err
		}
		if len(option.Pods) > 0 {
			options = append(options, option)
		}
		all = append(all, option.reasons)
	}
	return options, func(kind string) string {
		counts := map[string]int{}
		for _, reasons := range all {
			counts[reasons[kind]]++
		}
		var texts []string
		for _, reason := range slices.Sorted(maps.Keys(counts)) {
			texts = append(texts, fmt.Sprintf("%d %s", counts[reason], reason))
		}
		return strings.Join(texts, ", ")
	}, nil
}

// families returns the groups, those together that are alike.
func (in UpInput) families() [][]*Group {
	sorted := slices.SortedFunc(slices.Values(in.Groups), func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	var out [][]*Group
	for _, g := range sorted {
		at := -1
		if in.Balance {
			at = slices.IndexFunc(out, func(f []*Group) bool { return similar(f[0], g) })
		}
		if at < 0 {
			out = append(out, []*Group{g})
		} else {
			out[at] = append(out[at], g)
		}
	}
	return out
}

// estimate packs pods onto new nodes of groups that are alike. The smallest group gets the next node, if the pod fits on it.
func (in UpInput) estimate(
	ctx context.Context, family []*Group, pods []*corev1.Pod, keys map[*corev1.Pod]string, increases map[string]int, end time.Time,
) (*Option, error) {
	o := &Option{Groups: family, Increases: map[string]int{}, reasons: map[string]string{}, after: in.Cluster.Fork()}
	already := 0
	for _, n := range increases {
		already += n
	}
	var opened []string
	from := map[string]int{} // the nodes before it have no room for pods of the kind, and will not have either
	for _, pod := range bySize(pods, family) {
		kind := keys[pod]
		if o.reasons[kind] != "" {
			continue
		}
		name, err := "", error(&NotFit{})
		if from[kind] < len(opened) {
			name, err = o.after.Place(ctx, pod, opened[from[kind]:])
		}
		var notFit *NotFit
		if errors.As(err, &notFit) {
			from[kind] = len(opened)
			switch {
			case in.MaxTotal > 0 && in.Total+already+len(opened) >= in.MaxTotal:
				o.reasons[kind] = reasonTotal
				continue
			case in.Clock.Now().After(end):
				o.reasons[kind] = reasonTime
				continue
			}
			name, err = in.open(ctx, o, pod, increases, len(opened)+already)
			if errors.As(err, &notFit) {
				o.reasons[kind] = notFit.Error()
				continue
			}
			opened = append(opened, name)
		}
		if err != nil {
			return nil, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if from[kind] = slices.Index(opened, name); dependsOnOthers(pod) {
			from[kind] = 0
		}
		o.Pods = append(o.Pods, pod)
	}
	return o, nil
}

// dependsOnOthers reports whether a pod that does not fit on a node may fit on it when other pods are placed elsewhere, such as in other zones.
func dependsOnOthers(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule })
}

// open adds a node to an option, and puts the pod on it.
func (in UpInput) open(ctx context.Context, o *Option, pod *corev1.Pod, increases map[string]int, index int) (string, error) {
	size := func(g *Group) int { return g.Target + increases[g.Name] + o.Increases[g.Name] }
	smallest := slices.SortedFunc(slices.Values(o.Groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a.Name, b.Name))
	})
	refused := &NotFit{}
	for _, g := range smallest {
		reason := ""
		switch {
		case g.Refuses != "":
			reason = g.Refuses
		case g.Template.Node == nil:
			reason = reasonTemplate
		case size(g) >= g.Max:
			reason = reasonMaximum
		}
		if reason != "" {
			refused.Reasons = appendNew(refused.Reasons, reason)
			continue
		}
		node := g.instance(fmt.Sprintf("new-%s-%d", g.Name, index))
		o.after.Add(node)
		name, err := o.after.Place(ctx, pod, []string{node.Node.Name})
		var notFit *NotFit
		switch {
		case errors.As(err, &notFit):
			o.after.Remove(node.Node.Name)
			for _, reason := range notFit.Reasons {
				refused.Reasons = appendNew(refused.Reasons, reason)
			}
			continue
		case err != nil:
			return "", err
		}
		o.Increases[g.Name]++
		o.Nodes = append(o.Nodes, node)
		return name, nil
	}
	return "", refused
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// bySize sorts pods by the part of a node that they need, the largest first: fewer nodes are needed like that.
func bySize(pods []*corev1.Pod, family []*Group) []*corev1.Pod {
	at := slices.IndexFunc(family, func(g *Group) bool { return g.Template.Node != nil })
	if at < 0 {
		return pods
	}
	node, sizes := family[at].Template.Node, map[*corev1.Pod]float64{}
	for _, pod := range pods {
		for name, quantity := range requests(pod) {
			if allocatable := quantityOf(node, name); allocatable > 0 && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
				sizes[pod] += quantity.AsApproximateFloat64() / allocatable
			}
		}
	}
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int { return cmp.Compare(sizes[b], sizes[a]) })
	return sorted
}

// kindOf returns the same for pods that fit on the same nodes: those of one controller with the same spec. It is unique for others.
func kindOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return string(pod.UID) + "/" + pod.Namespace + "/" + pod.Name
	}
	spec := pod.Spec.DeepCopy()
	spec.Hostname, spec.NodeName = "", ""
	// The API server adds a volume with a random name.
	random := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return random(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return random(m.Name) })
		}
	}
	raw, err := json.Marshal([]any{owner.UID, pod.Namespace, pod.Labels, spec})
	if err != nil {
		return string(pod.UID)
	}
	return string(raw)
}
