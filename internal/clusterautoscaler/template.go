package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
	"gardener.cloud/gardener/internal/kube/removaltaint"
)

const (
	startupTaintPrefix = "startup-taint.cluster-autoscaler.kubernetes.io/"
	ignoreTaintPrefix  = "ignore-taint.cluster-autoscaler.kubernetes.io/"
	statusTaintPrefix  = "status-taint.cluster-autoscaler.kubernetes.io/"

	// podsPerNode is how many pods a node runs whose class does not say it.
	podsPerNode = 110
	// classGPU is the resource in a class for GPUs.
	classGPU corev1.ResourceName = "gpu"
	nodeGPU  corev1.ResourceName = "nvidia.com/gpu"
)

// starting reports whether a taint goes away when its node has started.
func (o *Options) starting(taint *corev1.Taint) bool {
	return slices.Contains(o.startupTaints, taint.Key) || strings.HasPrefix(taint.Key, startupTaintPrefix) || strings.HasPrefix(taint.Key, ignoreTaintPrefix)
}

// fresh returns the taints of a node that a new one has, too.
func (o *Options) fresh(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for i := range taints {
		t := &taints[i]
		passing := o.starting(t) || slices.Contains(o.statusTaints, t.Key) || strings.HasPrefix(t.Key, statusTaintPrefix) ||
			removaltaint.Is(*t) || t.Key == machinev1alpha1.PreferNoScheduleKey || t.Key == machinev1alpha1.NodePreservedKey ||
			strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == "node.cloudprovider.kubernetes.io/uninitialized"
		if !passing {
			out = append(out, *t)
		}
	}
	return out
}

// liveTemplate returns what a new node of a group is like, given one that exists: its own, or one of another group of the pool.
func (o *Options) liveTemplate(live plan.Occupied, own bool, deployment *machinev1alpha1.MachineDeployment, class *machinev1alpha1.MachineClass) plan.Occupied {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "template-" + deployment.Name, Labels: maps.Clone(live.Node.Labels), Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{Taints: o.fresh(live.Node.Spec.Taints)},
		Status: corev1.NodeStatus{
			Capacity: live.Node.Status.Capacity.DeepCopy(), Allocatable: live.Node.Status.Allocatable.DeepCopy(), NodeInfo: live.Node.Status.NodeInfo,
			Features: live.Node.Status.Features, RuntimeHandlers: live.Node.Status.RuntimeHandlers, Conditions: ready(),
		},
	}
	// What the machine-controller-manager says about this one machine would make templates of zones differ, so that they are not balanced.
	for _, key := range []string{
		machinev1alpha1.MachineLabelKey, machinev1alpha1.NodeCandidateForUpdate, machinev1alpha1.NodeSelectedForUpdate, machinev1alpha1.NodeUpdateResult,
	} {
		delete(node.Labels, key)
	}
	if !own && class != nil && class.NodeTemplate != nil {
		moveZone(node.Labels, class.NodeTemplate)
	}
	// It may be one of the old template.
	wanted := &deployment.Spec.Template.Spec.NodeTemplate
	maps.Copy(node.Labels, wanted.ObjectMeta.Labels)
	for _, taint := range o.fresh(wanted.Spec.Taints) {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	out := plan.Occupied{Node: node}
	for _, pod := range live.Pods {
		if (plan.DaemonSetPod(pod) || plan.MirrorPod(pod)) && !plan.Ended(pod) && pod.DeletionTimestamp == nil {
			out.Pods = append(out.Pods, pod)
		}
	}
	return out
}

func setZone(labels map[string]string, template *machinev1alpha1.NodeTemplate) {
	for key, value := range map[string]string{
		corev1.LabelTopologyZone: template.Zone, corev1.LabelFailureDomainBetaZone: template.Zone,
		corev1.LabelTopologyRegion: template.Region, corev1.LabelFailureDomainBetaRegion: template.Region,
	} {
		if value != "" {
			labels[key] = value
		}
	}
}

// moveZone changes the labels of a node of another zone. Storage drivers have labels of their own, by which volumes are bound to zones: what is not the name
// of the zone or of the region is not known for this zone.
func moveZone(labels map[string]string, template *machinev1alpha1.NodeTemplate) {
	zone, region := labels[corev1.LabelTopologyZone], labels[corev1.LabelTopologyRegion]
	if template.Zone != "" && template.Zone != zone {
		for key, value := range labels {
			switch {
			case !strings.HasPrefix(key, "topology."):
			case value == zone:
				labels[key] = template.Zone
			case value != region:
				delete(labels, key)
			}
		}
	}
	setZone(labels, template)
}

// classTemplate returns what a node of a group without nodes is like. Its pods are set by addDaemonSets.
func (o *Options) classTemplate(deployment *machinev1alpha1.MachineDeployment, class *machinev1alpha1.MachineClass) plan.Occupied {
	if class == nil || class.NodeTemplate == nil {
		return plan.Occupied{}
	}
	template, wanted := class.NodeTemplate, &deployment.Spec.Template.Spec.NodeTemplate
	capacity := corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(podsPerNode, resource.DecimalSI), "hugepages-1Gi": resource.Quantity{}, "hugepages-2Mi": resource.Quantity{},
	}
	for name, quantity := range template.Capacity {
		if name == classGPU {
			name = nodeGPU
		}
		if name != nodeGPU || !quantity.IsZero() {
			capacity[name] = quantity.DeepCopy()
		}
	}
	for name, quantity := range template.VirtualCapacity {
		if strings.Contains(string(name), "/") { // others are not written to Nodes: the kubelet measures them
			capacity[name] = quantity.DeepCopy()
		}
	}
	architecture := constants.ArchitectureAMD64
	if template.Architecture != nil {
		architecture = *template.Architecture
	}
	name := "template-" + deployment.Name
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: architecture, corev1.LabelInstanceTypeStable: template.InstanceType,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": architecture, corev1.LabelInstanceType: template.InstanceType,
	}
	setZone(labels, template)
	maps.Copy(labels, wanted.ObjectMeta.Labels)
	return plan.Occupied{Node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: maps.Clone(wanted.ObjectMeta.Annotations)},
		Spec:       corev1.NodeSpec{Taints: o.fresh(wanted.Spec.Taints)},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy(), Conditions: ready()},
	}}
}

func ready() []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

// addDaemonSets adds the pods of DaemonSets that fit on a template.
func addDaemonSets(ctx context.Context, simulator plan.Simulator, template plan.Occupied, sets []*appsv1.DaemonSet) (plan.Occupied, error) {
	cluster := simulator.Start([]plan.Occupied{{Node: template.Node}})
	for _, set := range sets {
		if set.DeletionTimestamp != nil {
			continue
		}
		pod := &corev1.Pod{
			ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy(),
		}
		pod.Namespace, pod.Name = set.Namespace, set.Name
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
		// The pods of DaemonSets are scheduled to nodes that others are not.
		for _, key := range []string{
			corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure,
			corev1.TaintNodeUnschedulable,
		} {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		_, err := cluster.Place(ctx, pod, []string{template.Node.Name})
		if notFit(err) {
			continue
		}
		if err != nil {
			return template, fmt.Errorf("place a pod of DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
		}
		template.Pods = append(template.Pods, pod)
	}
	return template, nil
}

func notFit(err error) bool {
	var e *plan.NotFit
	return errors.As(err, &e)
}
