package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Annotations of nodes and pods.
const (
	// ScaleDownDisabled on a Node with the value "true" keeps it.
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// SafeToEvict on a pod says whether its node may be removed.
	SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// SafeToEvictLocalVolumes on a pod lists volumes that may be lost, separated by commas.
	SafeToEvictLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)

// longTerminating is how long after its end a pod that still exists is no longer expected to be moved.
const longTerminating = 30 * time.Second

// Rules say which nodes may be removed.
type Rules struct {
	// IgnoreDaemonSets leaves pods of DaemonSets out when the use of a node is measured.
	IgnoreDaemonSets bool
	// KeepSystemPods and KeepLocalStorage keep nodes with pods of kube-system that no PodDisruptionBudget selects, or with local volumes.
	KeepSystemPods, KeepLocalStorage bool
	// KeepCustomControllerPods keeps nodes with pods of controllers that are not built in.
	KeepCustomControllerPods bool
	// MinReplicas keeps nodes with pods of controllers that have fewer replicas.
	MinReplicas int
	// MaxEmpty, MaxDrained and MaxTotal are how many nodes are removed at a time: without pods, with pods, and of both. If MaxEmpty is 0, only MaxTotal
	// limits those without pods.
	MaxEmpty, MaxDrained, MaxTotal int
}

// Candidate is a node that may be removed.
type Candidate struct {
	Occupied
	// Group is its group.
	Group *Group
	// Ready is whether it is ready, and Kept says why it must stay; empty if it may be removed.
	Ready bool
	Kept  string
}

// DownInput is what decides which nodes are removed.
type DownInput struct {
	// Candidates are all nodes of groups that are not being removed.
	Candidates []Candidate
	// Cluster is the cluster with the pods that are about to be scheduled, see UpInput.
	Cluster Simulation
	// Destinations are the names of nodes that pods may be moved to.
	Destinations []string
	// Waiting are pods that are about to be scheduled, by the node that they are placed on.
	Waiting map[string][]*corev1.Pod
	// Budgets are the PodDisruptionBudgets.
	Budgets []*policyv1.PodDisruptionBudget
	// Replicas returns how many replicas the controller of a pod has; false if that is not known.
	Replicas func(*corev1.Pod) (int, bool)
	// Since is since when nodes are not needed.
	Since map[string]time.Time
	// RemovingEmpty and RemovingDrained are how many nodes the autoscaler is removing now.
	RemovingEmpty, RemovingDrained int
	// Rules are the settings.
	Rules Rules
	// Now is the time.
	Now time.Time
}

// DownPlan is which nodes are not needed.
type DownPlan struct {
	// Since is since when which nodes are not needed.
	Since map[string]time.Time
	// Remove are those that were not needed for long enough, in order.
	Remove []Removal
	// Kept says why nodes are kept: those that are needed, and those that would be removed if others were not.
	Kept map[string]string
}

// Removal is a node that is removed.
type Removal struct {
	Candidate
	// Move are the pods that need another node. There are none if it is empty.
	Move []*corev1.Pod
}

// Down decides which nodes are not needed: idle ones, whose pods fit elsewhere.
func Down(ctx context.Context, in DownInput) (DownPlan, error) {
	out := DownPlan{Since: map[string]time.Time{}, Kept: map[string]string{}}
	spare := map[string]int{}
	var idle []Removal
	for _, c := range in.Candidates {
		spare[c.Group.Name] = c.Group.Target - c.Group.Min - c.Group.Draining
		move, reason := in.removable(c)
		if reason != "" {
			out.Kept[c.Node.Name] = reason
			continue
		}
		idle = append(idle, Removal{Candidate: c, Move: move})
	}
	in.sort(idle)
	destinations, cluster := slices.Clone(in.Destinations), in.Cluster
	moved := map[string][]*corev1.Pod{} // by the node that they are moved to
	budgets := remaining(in.Budgets)
	for _, r := range idle {
		name := r.Node.Name
		if spare[r.Group.Name] <= 0 {
			out.Kept[name] = "its group has its minimum size"
			continue
		}
		trial := cluster.Fork()
		trial.Remove(name)
		to := slices.DeleteFunc(slices.Clone(destinations), func(n string) bool { return n == name })
		// What is moved to it goes on to another one.
		placed, kept, err := move(ctx, trial, slices.Concat(r.Move, moved[name]), to)
		if err != nil {
			return out, err
		}
		if kept != "" {
			out.Kept[name] = kept
			continue
		}
		cluster, destinations = trial, to
		delete(moved, name)
		for pod, node := range placed {
			moved[node] = append(moved[node], pod)
		}
		spare[r.Group.Name]--
		since, ok := in.Since[name]
		if !ok {
			since = in.Now
		}
		out.Since[name] = since
		switch {
		case !in.due(r, since):
		case !in.room(out.Remove, r):
			out.Kept[name] = "as many nodes as allowed are being removed"
		case !budgets.take(r.Move):
			out.Kept[name] = "a PodDisruptionBudget of its pods allows no disruption while another node is being removed"
		default:
			out.Remove = append(out.Remove, r)
		}
	}
	return out, nil
}

// move puts pods on other nodes. It returns which pod is on which then, or why they cannot be moved.
func move(ctx context.Context, cluster Simulation, pods []*corev1.Pod, to []string) (placed map[*corev1.Pod]string, kept string, err error) {
	placed = map[*corev1.Pod]string{}
	for _, pod := range pods {
		free := pod.DeepCopy()
		free.Spec.NodeName = ""
		node, err := cluster.Place(ctx, free, to)
		var notFit *NotFit
		if errors.As(err, &notFit) {
			return nil, fmt.Sprintf("pod %s/%s fits on no other node", pod.Namespace, pod.Name), nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("move pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		placed[pod] = node
	}
	return placed, "", nil
}

// sort sorts nodes by the order in which they are considered: those that are not needed for longest come first, so that always the same are chosen.
func (in DownInput) sort(idle []Removal) {
	known := func(r Removal) int {
		if _, ok := in.Since[r.Node.Name]; ok {
			return 0
		}
		return 1
	}
	slices.SortFunc(idle, func(a, b Removal) int {
		return cmp.Or(
			cmp.Compare(known(a), known(b)), in.Since[a.Node.Name].Compare(in.Since[b.Node.Name]), cmp.Compare(min(len(a.Move), 1), min(len(b.Move), 1)),
			cmp.Compare(utilization(a.Occupied, in.Rules.IgnoreDaemonSets), utilization(b.Occupied, in.Rules.IgnoreDaemonSets)), cmp.Compare(a.Node.Name, b.Node.Name),
		)
	})
}

// due reports whether a node was not needed for long enough.
func (in DownInput) due(r Removal, since time.Time) bool {
	wait := r.Group.Options.UnneededTime
	if !r.Ready {
		wait = r.Group.Options.UnreadyTime
	}
	return in.Now.Sub(since) >= wait
}

// room reports whether one more node may be removed at the same time.
func (in DownInput) room(removed []Removal, r Removal) bool {
	empty, drained := in.RemovingEmpty, in.RemovingDrained
	for _, other := range removed {
		if len(other.Move) == 0 {
			empty++
		} else {
			drained++
		}
	}
	if empty+drained >= in.Rules.MaxTotal {
		return false
	}
	if len(r.Move) == 0 {
		return in.Rules.MaxEmpty == 0 || empty < in.Rules.MaxEmpty
	}
	return drained < in.Rules.MaxDrained
}

// removable returns the pods of a node that need another one, or why the node is kept.
func (in DownInput) removable(c Candidate) ([]*corev1.Pod, string) {
	switch {
	case c.Kept != "":
		return nil, c.Kept
	case c.Group.Rolling:
		return nil, "the machines of its group are being replaced"
	case c.Node.Annotations[ScaleDownDisabled] == "true":
		return nil, "it has the annotation " + ScaleDownDisabled
	case len(in.Waiting[c.Node.Name]) > 0:
		return nil, "pods are about to be scheduled to it"
	}
	threshold := c.Group.Options.UtilizationThreshold
	if hasGPU(c.Node) {
		threshold = c.Group.Options.GPUUtilizationThreshold
	}
	if used := utilization(c.Occupied, in.Rules.IgnoreDaemonSets); c.Ready && used >= threshold {
		return nil, fmt.Sprintf("%.0f %% of it are requested", 100*used)
	}
	var move []*corev1.Pod
	for _, pod := range c.Pods {
		if Stays(pod, in.Now) {
			continue
		}
		reason := in.blocks(pod)
		if reason == "" && in.refused(pod) {
			reason = "has more than one PodDisruptionBudget"
		}
		if reason != "" {
			return nil, fmt.Sprintf("pod %s/%s %s", pod.Namespace, pod.Name, reason)
		}
		move = append(move, pod)
	}
	if !remaining(in.Budgets).take(move) {
		return nil, "a PodDisruptionBudget of its pods allows no disruption"
	}
	return move, ""
}

// Stays reports whether a pod ends with its node, so that it needs no other one: it is one of a DaemonSet, static, or about to end.
func Stays(pod *corev1.Pod, now time.Time) bool {
	if DaemonSetPod(pod) || MirrorPod(pod) || Ended(pod) {
		return true
	}
	return pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(longTerminating))
}

// blocks returns why a pod keeps its node; empty if it does not.
func (in DownInput) blocks(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "" // it leaves anyway
	}
	switch pod.Annotations[SafeToEvict] {
	case "true":
		return ""
	case "false":
		return "has the annotation " + SafeToEvict + "=false"
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return "has no controller that would create it again"
	}
	builtIn := slices.Contains([]string{"ReplicaSet", "ReplicationController", "StatefulSet", "Job"}, owner.Kind)
	if !builtIn && in.Rules.KeepCustomControllerPods {
		return "belongs to a " + owner.Kind
	}
	if replicas, ok := in.Replicas(pod); ok && replicas < in.Rules.MinReplicas {
		return fmt.Sprintf("has a controller with %d replicas only", replicas)
	}
	if in.Rules.KeepSystemPods && pod.Namespace == metav1.NamespaceSystem &&
		!slices.ContainsFunc(in.Budgets, func(b *policyv1.PodDisruptionBudget) bool { return selects(b, pod) }) {
		return "is in kube-system and has no PodDisruptionBudget"
	}
	if volume := localVolume(pod); in.Rules.KeepLocalStorage && volume != "" {
		return fmt.Sprintf("has local storage in volume %q", volume)
	}
	return ""
}

// refused reports whether the API server refuses to evict a pod, whatever its PodDisruptionBudgets allow: it has more than one. Those of pods that have not
// started do not count.
func (in DownInput) refused(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending {
		return false
	}
	own := 0
	for _, budget := range in.Budgets {
		if selects(budget, pod) {
			own++
		}
	}
	return own > 1
}

// localVolume returns the name of a volume whose content would be lost; empty if there is none.
func localVolume(pod *corev1.Pod) string {
	safe := splitList(pod.Annotations[SafeToEvictLocalVolumes])
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		local := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		if local && !slices.Contains(safe, v.Name) {
			return v.Name
		}
	}
	return ""
}

// budgets are how many further pods each PodDisruptionBudget lets go.
type budgets struct {
	list []*policyv1.PodDisruptionBudget
	left map[*policyv1.PodDisruptionBudget]int32
}

func remaining(list []*policyv1.PodDisruptionBudget) budgets {
	b := budgets{list: list, left: map[*policyv1.PodDisruptionBudget]int32{}}
	for _, budget := range list {
		b.left[budget] = budget.Status.DisruptionsAllowed
	}
	return b
}

// take takes one from the budgets of each pod. It reports whether all of them have enough; otherwise, nothing is taken.
func (b budgets) take(pods []*corev1.Pod) bool {
	left := maps.Clone(b.left)
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, budget := range b.list {
			if !selects(budget, pod) || !podReady(pod) && allowsUnready(budget) {
				continue
			}
			if left[budget]--; left[budget] < 0 {
				return false
			}
		}
	}
	maps.Copy(b.left, left)
	return true
}

// allowsUnready reports whether a pod that is not ready may go without being counted: always or, by default, if the application has enough that are.
func allowsUnready(budget *policyv1.PodDisruptionBudget) bool {
	return ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow ||
		budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}

func splitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func selects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if budget.Namespace != pod.Namespace {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
