// Package plan decides which nodes a cluster needs: it compares pods with nodes, and with what groups of nodes may grow to. It is pure: what
// pods fit on is asked of a Simulator.
package plan

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Group is a MachineDeployment: nodes that are alike.
type Group struct {
	// Name is the name of the group.
	Name string
	// Min and Max are how many nodes it may have, and Target is how many are requested now.
	Min, Max, Target int
	// Template is a new node of the group with the pods of DaemonSets. Its node is nil if there is no template.
	Template Occupied
	// Upcoming is how many requested nodes are not usable yet. Pods are expected to be scheduled to them.
	Upcoming int
	// Draining is how many of them are being drained. They are still part of Target.
	Draining int
	// Refuses says why the group must not grow now, such as after a failure. Empty means that it may.
	Refuses string
	// Rolling is whether its machines are being replaced: nothing is removed then.
	Rolling bool
	// Options are the settings of the group.
	Options Options
}

// Options are settings that a group may have of its own.
type Options struct {
	// UtilizationThreshold is below which part of its capacity, from 0 to 1, a node is idle. GPUUtilizationThreshold is that of nodes with GPUs.
	UtilizationThreshold, GPUUtilizationThreshold float64
	// UnneededTime and UnreadyTime are how long a node is not needed before it is removed: one that is ready, and one that is not.
	UnneededTime, UnreadyTime time.Duration
	// MaxNodeProvisionTime is how long a node may take to join.
	MaxNodeProvisionTime time.Duration
}

const (
	// resourceGPU is the resource of GPUs that a utilization is measured by.
	resourceGPU corev1.ResourceName = "nvidia.com/gpu"
	// mirrorAnnotation is on pods that a kubelet created from a file.
	mirrorAnnotation = "kubernetes.io/config.mirror"
	// daemonSetAnnotation makes a pod count as one of a DaemonSet.
	daemonSetAnnotation = "cluster-autoscaler.kubernetes.io/daemonset-pod"
)

// instance returns a node of a group that does not exist yet.
func (g *Group) instance(name string) Occupied {
	node := g.Template.Node.DeepCopy()
	node.Name = name
	metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, name)
	pods := make([]*corev1.Pod, 0, len(g.Template.Pods))
	for _, pod := range g.Template.Pods {
		pod = pod.DeepCopy()
		pod.Name, pod.Spec.NodeName = pod.Name+"-"+name, name
		pods = append(pods, pod)
	}
	return Occupied{Node: node, Pods: pods}
}

// zoneLabel reports whether a label may differ between groups that are alike: zones, names, and what storage drivers add.
func zoneLabel(key string) bool {
	return key == corev1.LabelHostname || key == corev1.LabelFailureDomainBetaZone || key == corev1.LabelFailureDomainBetaRegion || strings.HasPrefix(key, "topology.")
}

// similar reports whether nodes of two groups differ in their zone at most, so that it is better to have as many of one as of the other.
func similar(a, b *Group) bool {
	x, y := a.Template.Node, b.Template.Node
	if x == nil || y == nil {
		return false
	}
	if !sameLabels(x.Labels, y.Labels) || !sameTaints(x.Spec.Taints, y.Spec.Taints) || len(x.Status.Allocatable) != len(y.Status.Allocatable) {
		return false
	}
	for name, quantity := range x.Status.Allocatable {
		other, ok := y.Status.Allocatable[name]
		// What a live node reserves for itself varies a bit.
		if !ok || math.Abs(quantity.AsApproximateFloat64()-other.AsApproximateFloat64()) > 0.05*math.Max(quantity.AsApproximateFloat64(), other.AsApproximateFloat64()) {
			return false
		}
	}
	return true
}

func sameLabels(a, b map[string]string) bool {
	subset := func(a, b map[string]string) bool {
		for key, value := range a {
			if other, ok := b[key]; !zoneLabel(key) && (!ok || other != value) {
				return false
			}
		}
		return true
	}
	return subset(a, b) && subset(b, a)
}

func sameTaints(a, b []corev1.Taint) bool {
	within := func(t corev1.Taint, list []corev1.Taint) bool {
		return slices.ContainsFunc(list, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(t corev1.Taint) bool { return !within(t, b) })
}

// requests returns what a pod requests.
func requests(pod *corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{}
	add := func(to, list corev1.ResourceList) {
		for name, quantity := range list {
			sum := to[name]
			sum.Add(quantity)
			to[name] = sum
		}
	}
	atLeast := func(list corev1.ResourceList) {
		for name, quantity := range list {
			if current, ok := out[name]; !ok || quantity.Cmp(current) > 0 {
				out[name] = quantity
			}
		}
	}
	for i := range pod.Spec.Containers {
		add(out, pod.Spec.Containers[i].Resources.Requests)
	}
	sidecars := corev1.ResourceList{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(out, c.Resources.Requests)
			add(sidecars, c.Resources.Requests)
			continue
		}
		start := sidecars.DeepCopy()
		add(start, c.Resources.Requests)
		atLeast(start)
	}
	if pod.Spec.Resources != nil {
		for name, quantity := range pod.Spec.Resources.Requests { // those of the pod stand for those of its containers
			out[name] = quantity
		}
	}
	add(out, pod.Spec.Overhead)
	return out
}

// DaemonSetPod reports whether a pod belongs to its node, so that it needs no other one.
func DaemonSetPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" || pod.Annotations[daemonSetAnnotation] == "true"
}

// MirrorPod reports whether a kubelet created a pod from a file.
func MirrorPod(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[mirrorAnnotation]
	return ok
}

// Ended reports whether a pod uses nothing any more.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// utilization returns the part of a node that its pods request: of GPUs if it has some, otherwise of CPU or memory, whichever is more.
func utilization(node Occupied, ignoreDaemonSets bool) float64 {
	sums := map[corev1.ResourceName]float64{}
	for _, pod := range node.Pods {
		if Ended(pod) || ignoreDaemonSets && DaemonSetPod(pod) {
			continue
		}
		for name, quantity := range requests(pod) {
			sums[name] += quantity.AsApproximateFloat64()
		}
	}
	part := func(name corev1.ResourceName) float64 {
		allocatable := quantityOf(node.Node, name)
		if allocatable <= 0 {
			return 1 // nothing says that it is idle
		}
		return sums[name] / allocatable
	}
	if hasGPU(node.Node) {
		return part(resourceGPU)
	}
	return math.Max(part(corev1.ResourceCPU), part(corev1.ResourceMemory))
}

func hasGPU(node *corev1.Node) bool { return quantityOf(node, resourceGPU) > 0 }

func quantityOf(node *corev1.Node, name corev1.ResourceName) float64 {
	quantity := resource.Quantity{}
	if q, ok := node.Status.Allocatable[name]; ok {
		quantity = q
	}
	return quantity.AsApproximateFloat64()
}
