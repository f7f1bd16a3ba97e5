package clusterautoscaler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// groupState is a group with its machines.
type groupState struct {
	plan.Group
	deployment *machinev1alpha1.MachineDeployment
	class      *machinev1alpha1.MachineClass
	machines   []*machineState
	// registered, readyNodes and unready count its nodes.
	registered, readyNodes, unready, starting int
}

// machineState is a machine with its node.
type machineState struct {
	*machinev1alpha1.Machine
	node *corev1.Node // nil if it has not joined
	// chosen is whether the autoscaler has chosen it for deletion, and going is whether it is being deleted, or will be, for whatever reason.
	chosen, going bool
	// kept is whether it has failed and is kept for inspection, so that it is one of its group, and no other one replaces it.
	kept bool
}

// exhausted returns whether the infrastructure has no capacity for the machine.
func (m *machineState) exhausted() bool {
	o := m.Status.LastOperation
	return m.node == nil && o.Type == machinev1alpha1.MachineOperationCreate && o.State == machinev1alpha1.MachineStateFailed && o.ErrorCode == "ResourceExhausted"
}

// state is what both clusters have.
type state struct {
	now    time.Time
	groups []*groupState
	// nodes are all nodes with their pods, by name. Pods that may be preempted are left out.
	nodes map[string]plan.Occupied
	// owners are the machines of nodes, and groupOf their groups.
	owners  map[string]*machineState
	groupOf map[string]*groupState
	// pending are pods that wait for a node.
	pending []*corev1.Pod
	total   int
}

// observe reads both clusters.
func (s *Scaler) observe(ctx context.Context) (*state, error) {
	out := &state{now: s.clock.Now(), nodes: map[string]plan.Occupied{}, owners: map[string]*machineState{}, groupOf: map[string]*groupState{}}
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for _, node := range nodes {
		out.nodes[node.Name] = plan.Occupied{Node: node}
	}
	byNode := map[string][]*corev1.Pod{}
	nominated := func(pod *corev1.Pod) bool { // to a node that has not gone since: the scheduler may keep the name
		_, ok := out.nodes[pod.Status.NominatedNodeName]
		return ok
	}
	for _, pod := range pods {
		if plan.Ended(pod) || s.expendable(pod) {
			continue
		}
		switch {
		case pod.Spec.NodeName != "":
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		case pod.DeletionTimestamp != nil || plan.DaemonSetPod(pod):
		case nominated(pod): // the pods that it preempts are about to end
			byNode[pod.Status.NominatedNodeName] = append(byNode[pod.Status.NominatedNodeName], pod)
		case unschedulable(pod) && out.now.Sub(pod.CreationTimestamp.Time) >= s.scaleUpDelay(pod):
			out.pending = append(out.pending, pod)
		}
	}
	slices.SortFunc(out.pending, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.UID, b.UID))
	})
	for _, node := range nodes {
		out.nodes[node.Name] = plan.Occupied{Node: node, Pods: byNode[node.Name]}
	}
	if err := s.observeGroups(ctx, out); err != nil {
		return nil, err
	}
	out.total = len(out.nodes)
	for _, g := range out.groups {
		out.total += max(0, g.Target-g.registered)
	}
	return out, nil
}

// expendable reports whether the priority of a pod is so low that it needs no node.
func (s *Scaler) expendable(pod *corev1.Pod) bool {
	return int(ptr.Deref(pod.Spec.Priority, 0)) < s.options.expendableCutoff
}

// scaleUpDelay is how long a pod is pending before it counts.
func (s *Scaler) scaleUpDelay(pod *corev1.Pod) time.Duration {
	own, err := time.ParseDuration(pod.Annotations["cluster-autoscaler.kubernetes.io/pod-scale-up-delay"])
	if err == nil && own > s.options.newPodScaleUpDelay {
		return own
	}
	return s.options.newPodScaleUpDelay
}

func unschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// observeGroups reads MachineDeployments, and assigns machines and nodes to them.
func (s *Scaler) observeGroups(ctx context.Context, out *state) error {
	machines := &machinev1alpha1.MachineList{}
	if err := s.controlCache.List(ctx, machines, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for _, option := range s.options.Nodes {
		deployment := &machinev1alpha1.MachineDeployment{}
		err := s.controlCache.Get(ctx, client.ObjectKey{Namespace: option.Namespace, Name: option.Name}, deployment)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read MachineDeployment %q: %w", option.Name, err)
		}
		if deployment.DeletionTimestamp != nil {
			continue
		}
		g := &groupState{deployment: deployment, Group: plan.Group{
			Name: option.Name, Min: option.Min, Max: option.Max, Target: int(deployment.Spec.Replicas), Rolling: rolling(deployment),
			Options: optionsOf(deployment, s.options.defaults),
		}}
		class := &machinev1alpha1.MachineClass{}
		switch err := s.controlCache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: deployment.Spec.Template.Spec.Class.Name}, class); {
		case err == nil:
			g.class = class
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read MachineClass %q: %w", deployment.Spec.Template.Spec.Class.Name, err)
		}
		s.assign(g, machines.Items, out)
		out.groups = append(out.groups, g)
	}
	return s.templates(ctx, out)
}

// assign assigns machines and their nodes to a group, and counts them.
func (s *Scaler) assign(g *groupState, machines []machinev1alpha1.Machine, out *state) {
	selector, err := metav1.LabelSelectorAsSelector(g.deployment.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	listed, active := triggered(g.deployment), 0
	for i := range machines {
		machine := &machines[i]
		if !selector.Matches(labels.Set(machine.Labels)) {
			continue
		}
		phase := machine.Status.CurrentStatus.Phase
		m := &machineState{Machine: machine, node: nodeOf(machine, out.nodes), chosen: chosen(g.deployment, listed, machine)}
		m.going = m.chosen || machine.DeletionTimestamp != nil || phase == machinev1alpha1.MachineTerminating
		if phase == machinev1alpha1.MachineFailed && !m.going {
			expiry := machine.Status.CurrentStatus.PreserveExpiryTime
			m.kept = expiry != nil && out.now.Before(expiry.Time)
			m.going = !m.kept
		}
		g.machines = append(g.machines, m)
		if m.node != nil {
			out.owners[m.node.Name], out.groupOf[m.node.Name] = m, g
		}
		if m.going {
			continue
		}
		active++
		switch {
		case m.kept && m.node == nil:
		case m.kept:
			g.registered++
			g.unready++
		case m.node == nil && !m.exhausted() && out.now.Sub(machine.CreationTimestamp.Time) < g.Options.MaxNodeProvisionTime:
			g.Upcoming++
		case m.node == nil:
		case s.usable(m.node):
			g.registered++
			g.readyNodes++
		case out.now.Sub(m.node.CreationTimestamp.Time) < g.Options.MaxNodeProvisionTime:
			g.registered++
			g.starting++
			if s.draining[m.node.Name] == nil {
				g.Upcoming++
			}
		default:
			g.registered++
			g.unready++
		}
		if m.node != nil && s.draining[m.node.Name] != nil {
			g.Draining++
		}
	}
	// Machines that do not exist yet. If that takes too long, see fixSizes.
	g.Upcoming += max(0, g.Target-active)
}

// nodeOf returns the node of a machine, nil if it has not joined.
func nodeOf(machine *machinev1alpha1.Machine, nodes map[string]plan.Occupied) *corev1.Node {
	if node, ok := nodes[machine.Labels[machinev1alpha1.NodeLabelKey]]; ok {
		return node.Node
	}
	if machine.Spec.ProviderID == "" {
		return nil
	}
	last := func(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if id := nodes[name].Node.Spec.ProviderID; id != "" && last(id) == last(machine.Spec.ProviderID) {
			return nodes[name].Node
		}
	}
	return nil
}

// usable reports whether pods are scheduled to a node: it is ready and has started.
func (s *Scaler) usable(node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if s.options.starting(t) || t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeNetworkUnavailable ||
			t.Key == "node.cloudprovider.kubernetes.io/uninitialized" {
			return false
		}
	}
	return nodeReady(node)
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// rolling reports whether machines of a deployment are being replaced: its update has not ended, and there are machines of an old template. Without
// them, such as in a new deployment, nothing is.
func rolling(deployment *machinev1alpha1.MachineDeployment) bool {
	status := &deployment.Status
	if status.ObservedGeneration >= deployment.Generation && status.Replicas == status.UpdatedReplicas {
		return false
	}
	for _, c := range status.Conditions {
		if c.Type != machinev1alpha1.MachineDeploymentProgressing {
			continue
		}
		done := c.Status == machinev1alpha1.ConditionTrue && c.Reason == "NewMachineSetAvailable"
		return !done && !(c.Status == machinev1alpha1.ConditionUnknown && c.Reason == "DeploymentPaused")
	}
	return false
}

// optionsOf returns the settings of a group. What is not valid is ignored.
func optionsOf(deployment *machinev1alpha1.MachineDeployment, defaults plan.Options) plan.Options {
	o := defaults
	number := func(key string, to *float64) {
		if value, err := strconv.ParseFloat(deployment.Annotations[key], 64); err == nil && value >= 0 && value <= 1 {
			*to = value
		}
	}
	duration := func(key string, to *time.Duration) {
		if value, err := time.ParseDuration(deployment.Annotations[key]); err == nil && value >= 0 {
			*to = value
		}
	}
	number(extensionsv1alpha1.ScaleDownUtilizationThresholdAnnotation, &o.UtilizationThreshold)
	number(extensionsv1alpha1.ScaleDownGPUUtilizationThresholdAnnotation, &o.GPUUtilizationThreshold)
	duration(extensionsv1alpha1.ScaleDownUnneededTimeAnnotation, &o.UnneededTime)
	duration(extensionsv1alpha1.ScaleDownUnreadyTimeAnnotation, &o.UnreadyTime)
	duration(extensionsv1alpha1.MaxNodeProvisionTimeAnnotation, &o.MaxNodeProvisionTime)
	return o
}

// templates sets the templates of groups: from a node of theirs, from what such a node was like before, from a node of the same pool, from what it was like
// before, or from the class.
func (s *Scaler) templates(ctx context.Context, out *state) error {
	var sets []*appsv1.DaemonSet
	for _, g := range out.groups {
		live, own := s.example(g, out)
		last, ok := s.seen[g.Name]
		ok = ok && g.class != nil && last.class == g.class.Name && apiequality.Semantic.DeepEqual(last.wanted, wantedOf(g))
		if live.Node != nil && (own || !ok || !last.own) {
			g.Template = s.options.liveTemplate(live, own, g.deployment, g.class)
			if g.class != nil {
				s.seen[g.Name] = remembered{class: g.class.Name, wanted: wantedOf(g), own: own, template: g.Template}
			}
			continue
		}
		if ok {
			g.Template = last.template
			continue
		}
		template := s.options.classTemplate(g.deployment, g.class)
		if template.Node == nil {
			continue
		}
		if sets == nil {
			var err error
			if sets, err = s.daemonSets.List(labels.Everything()); err != nil {
				return fmt.Errorf("list DaemonSets: %w", err)
			}
			slices.SortFunc(sets, func(a, b *appsv1.DaemonSet) int {
				return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
			})
		}
		var err error
		if g.Template, err = addDaemonSets(ctx, s.simulator, template, sets); err != nil {
			return err
		}
	}
	return nil
}

// wantedOf returns the labels and taints that nodes of a group get. They change without a new class.
func wantedOf(g *groupState) machinev1alpha1.NodeTemplateSpec {
	of, out := &g.deployment.Spec.Template.Spec.NodeTemplate, machinev1alpha1.NodeTemplateSpec{}
	out.ObjectMeta.Labels, out.Spec.Taints = of.ObjectMeta.Labels, of.Spec.Taints
	return out
}

// example returns a node that new ones of a group are like, and whether it is its own. One of another group has the same pool and type.
func (s *Scaler) example(g *groupState, out *state) (node plan.Occupied, own bool) {
	var other plan.Occupied
	for _, name := range slices.Sorted(maps.Keys(out.nodes)) {
		node := out.nodes[name]
		m := out.owners[name]
		if m == nil || m.going || m.kept || !s.usable(node.Node) || node.Node.DeletionTimestamp != nil || g.class != nil && g.class.NodeTemplate != nil &&
			node.Node.Labels[corev1.LabelInstanceTypeStable] != "" && node.Node.Labels[corev1.LabelInstanceTypeStable] != g.class.NodeTemplate.InstanceType {
			continue
		}
		if out.groupOf[name] == g {
			return node, true
		}
		pool := node.Node.Labels[constants.WorkerPool]
		if pool != "" && pool == g.deployment.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels[constants.WorkerPool] {
			other = node
		}
	}
	return other, false
}
