package care

import (
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// nodeAgentStartTimeout is how old a node may be until gardener-node-agent has renewed its Lease for the first time.
	nodeAgentStartTimeout = 2 * time.Minute
	// applyTimeout is how long gardener-node-agent may take to apply an OperatingSystemConfig, after its reconciliation delay.
	applyTimeout = 2 * time.Minute
)

// observedNodes is what one pass has read about the nodes of a shoot.
type observedNodes struct {
	nodes []corev1.Node
	// leases are the heartbeats of gardener-node-agent.
	leases []coordinationv1.Lease
	// osConfigs are the Secrets with OperatingSystemConfigs for gardener-node-agent. Only the metadata is read.
	osConfigs          []metav1.PartialObjectMetadata
	machineDeployments []machinev1alpha1.MachineDeployment
}

// nodeProblems are the reasons why EveryNodeReady is False.
func nodeProblems(shoot *corev1beta1.Shoot, o *observed, now time.Time) []error {
	if o.nodesError != nil {
		return []error{o.nodesError}
	}
	errs := nodeNumberProblems(shoot, &o.observedNodes)
	var expected []error
	for i := range o.nodes {
		node := &o.nodes[i]
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machinev1alpha1.NodePreservedKey }) {
			expected = append(expected, preservedNodeProblems(node)...)
			continue
		}
		errs = append(errs, kube.NodeReady(node))
		errs = append(errs, nodeConditionProblems(node)...)
		if !managed(node) {
			continue
		}
		errs = append(errs, nodeAgentProblem(node, o.leases, now))
		if node.Labels[machinev1alpha1.NodeCandidateForUpdate] == "true" { // it waits for its update in place, maybe until the user selects it
			errs = append(errs, updateProblem(node))
			continue
		}
		errs = append(errs, osConfigProblem(node, o.osConfigs, now), kubeletVersionProblem(shoot, node))
	}
	errs = append(errs, expected...) // others come first, as these have been decided about
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// managed is whether a machine stands for a node. Others may be of the user: they have neither gardener-node-agent nor the tunnel.
func managed(node *corev1.Node) bool { return node.Annotations[machinev1alpha1.NotManagedByMCM] == "" }

// preservedNodeProblems are those of the node of a machine that has failed and is kept for inspection. What runs on it does not matter any more.
func preservedNodeProblems(node *corev1.Node) []error {
	var errs []error
	for _, err := range append([]error{kube.NodeReady(node)}, nodeConditionProblems(node)...) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (node and backing machine preserved by MCM)", err))
		}
	}
	return errs
}

// nodeNumberProblems returns for which worker pools and machines there are too few or too many nodes.
func nodeNumberProblems(shoot *corev1beta1.Shoot, o *observedNodes) []error {
	if h := shoot.Spec.Hibernation; h != nil && ptr.Deref(h.Enabled, false) {
		return nil // they are being deleted
	}
	if len(o.nodes) == 0 {
		return []error{errors.New("no node has joined the cluster yet")}
	}
	var errs []error
	for _, pool := range shoot.Spec.Provider.Workers {
		if have := count(o.nodes, func(n *corev1.Node) bool { return n.Labels[constants.WorkerPool] == pool.Name }); have < pool.Minimum {
			errs = append(errs, fmt.Errorf("worker pool %q has %d of at least %d nodes", pool.Name, have, pool.Minimum))
		}
	}
	if len(o.machineDeployments) == 0 {
		return errs
	}
	var desired, existing int32
	for _, d := range o.machineDeployments {
		desired, existing = desired+d.Spec.Replicas, existing+d.Status.Replicas
	}
	have := count(o.nodes, managed)
	switch {
	case have < desired:
		errs = append(errs, fmt.Errorf("%d of %d machines have joined the cluster as nodes", have, desired))
	case have > max(desired, existing): // while machines are replaced, more of them exist than desired
		errs = append(errs, fmt.Errorf("there are %d nodes for %d machines", have, max(desired, existing)))
	}
	return errs
}

func count(nodes []corev1.Node, matches func(*corev1.Node) bool) int32 {
	n := int32(0)
	for i := range nodes {
		if matches(&nodes[i]) {
			n++
		}
	}
	return n
}

// problemConditions are conditions of nodes that are a problem when they are True.
var problemConditions = []corev1.NodeConditionType{
	corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
}

// nodeConditionProblems returns the conditions of a node that are a problem, besides Ready.
func nodeConditionProblems(node *corev1.Node) []error {
	const unitsReady = corev1.NodeConditionType(nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady)
	var errs []error
	for _, c := range node.Status.Conditions {
		if slices.Contains(problemConditions, c.Type) && c.Status == corev1.ConditionTrue || c.Type == unitsReady && c.Status == corev1.ConditionFalse {
			errs = append(errs, fmt.Errorf("Node %q: %s is %s: %s", node.Name, c.Type, c.Status, c.Message))
		}
	}
	return errs
}

// nodeAgentProblem returns that gardener-node-agent does not renew its Lease, or nil.
func nodeAgentProblem(node *corev1.Node, leases []coordinationv1.Lease, now time.Time) error {
	index := slices.IndexFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == nodeagentconfigv1alpha1.NodeLeasePrefix+node.Name })
	if index < 0 {
		if now.Sub(node.CreationTimestamp.Time) < nodeAgentStartTimeout {
			return nil
		}
		return fmt.Errorf("Node %q: gardener-node-agent has never renewed its Lease", node.Name)
	}
	if expired(&leases[index], now) {
		return fmt.Errorf("Node %q: gardener-node-agent does not renew its Lease", node.Name)
	}
	return nil
}

// expired is whether a Lease was not renewed in time.
func expired(lease *coordinationv1.Lease, now time.Time) bool {
	s := lease.Spec
	return s.RenewTime == nil || s.LeaseDurationSeconds == nil || now.Sub(s.RenewTime.Time) > time.Duration(*s.LeaseDurationSeconds)*time.Second
}

// updateProblem returns that a node could not be updated in place, or nil.
func updateProblem(node *corev1.Node) error {
	if node.Labels[machinev1alpha1.NodeUpdateResult] != machinev1alpha1.NodeUpdateFailed {
		return nil
	}
	return fmt.Errorf("Node %q could not be updated in place: %s", node.Name, node.Annotations[machinev1alpha1.MachineUpdateFailedReason])
}

// osConfigProblem returns that a node has not applied its OperatingSystemConfig in time, or nil. That of a node that is about to be replaced
// may not exist any more. Each gardener-node-agent starts after a delay of its own.
func osConfigProblem(node *corev1.Node, osConfigs []metav1.PartialObjectMetadata, now time.Time) error {
	index := slices.IndexFunc(osConfigs, func(c metav1.PartialObjectMetadata) bool {
		return c.Name == node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]
	})
	if index < 0 {
		return nil
	}
	want := osConfigs[index].Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig]
	have := node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
	delay, _ := time.ParseDuration(node.Annotations[constants.NodeAgentReconciliationDelay]) // an invalid duration counts as none
	begin := writtenAt(&osConfigs[index])
	if node.CreationTimestamp.After(begin) {
		begin = node.CreationTimestamp.Time
	}
	if have == want || now.Sub(begin) < delay+applyTimeout {
		return nil
	}
	if have == "" {
		return fmt.Errorf("Node %q: no OperatingSystemConfig was applied yet", node.Name)
	}
	return fmt.Errorf("Node %q: the applied OperatingSystemConfig is outdated", node.Name)
}

// writtenAt is the time of the last write of an object.
func writtenAt(object *metav1.PartialObjectMetadata) time.Time {
	at := object.CreationTimestamp.Time
	for _, f := range object.ManagedFields {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// kubeletVersionProblem returns that a kubelet does not have the version of its worker pool, or nil. It is not checked while the spec of the
// Shoot is not reconciled yet.
func kubeletVersionProblem(shoot *corev1beta1.Shoot, node *corev1.Node) error {
	if shoot.Status.ObservedGeneration != shoot.Generation {
		return nil
	}
	workers := shoot.Spec.Provider.Workers
	index := slices.IndexFunc(workers, func(w corev1beta1.Worker) bool { return w.Name == node.Labels[constants.WorkerPool] })
	if index < 0 {
		return nil
	}
	text := operatingsystemconfig.KubernetesVersion(&workers[index], shoot.Spec.Kubernetes.Version)
	want, err := version.ParseGeneric(text)
	if err != nil {
		return nil // rejected by the validation of Shoots
	}
	have, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil || have.Major() != want.Major() || have.Minor() != want.Minor() || have.Patch() != want.Patch() {
		return fmt.Errorf("Node %q: the kubelet has version %q instead of %q", node.Name, node.Status.NodeInfo.KubeletVersion, text)
	}
	return nil
}
