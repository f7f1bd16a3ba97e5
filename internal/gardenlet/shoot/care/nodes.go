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

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// agentPatience is how old a node may be until its agent has renewed its Lease for the first time.
	agentPatience = 2 * time.Minute
	// applyPatience is for how long an agent may work on an operating system config, after the time that it waits before.
	applyPatience = 2 * time.Minute
)

// nodesSeen is what was seen of the nodes of a shoot.
type nodesSeen struct {
	nodes []corev1.Node
	// leases are those by which node agents say that they work.
	leases []coordinationv1.Lease
	// configs are what node agents are to apply. Only the metadata is there.
	configs  []metav1.PartialObjectMetadata
	machines []machinev1alpha1.MachineDeployment
}

// judgeNodes says what is wrong with the nodes of a shoot.
func judgeNodes(shoot *corev1beta1.Shoot, seen *nodesSeen, now time.Time) []error {
	errs := judgeNumbers(shoot, seen)
	for i := range seen.nodes {
		node := &seen.nodes[i]
		errs = append(errs, kube.NodeReady(node))
		errs = append(errs, pressure(node)...)
		errs = append(errs, agentWorks(node, seen.leases, now), configApplied(node, seen.configs, now), kubeletVersion(shoot, node))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// judgeNumbers says of which nodes there are too few or too many.
func judgeNumbers(shoot *corev1beta1.Shoot, seen *nodesSeen) []error {
	if h := shoot.Spec.Hibernation; h != nil && h.Enabled != nil && *h.Enabled {
		return nil // they are about to go
	}
	if len(seen.nodes) == 0 {
		return []error{errors.New("no node has joined the cluster yet")}
	}
	var errs []error
	for _, pool := range shoot.Spec.Provider.Workers {
		if have := count(seen.nodes, func(n *corev1.Node) bool { return n.Labels[constants.WorkerPool] == pool.Name }); have < pool.Minimum {
			errs = append(errs, fmt.Errorf("worker pool %q has %d of at least %d nodes", pool.Name, have, pool.Minimum))
		}
	}
	if len(seen.machines) == 0 {
		return errs
	}
	var wanted, existing int32
	for _, d := range seen.machines {
		wanted, existing = wanted+d.Spec.Replicas, existing+d.Status.Replicas
	}
	have := count(seen.nodes, func(n *corev1.Node) bool { return n.Annotations[machinev1alpha1.NotManagedByMCM] == "" })
	switch {
	case have < wanted:
		errs = append(errs, fmt.Errorf("%d of %d machines have joined the cluster as nodes", have, wanted))
	case have > max(wanted, existing): // while machines are replaced there are more of them than wanted
		errs = append(errs, fmt.Errorf("there are %d nodes for %d machines", have, max(wanted, existing)))
	}
	return errs
}

func count(nodes []corev1.Node, counts func(*corev1.Node) bool) int32 {
	n := int32(0)
	for i := range nodes {
		if counts(&nodes[i]) {
			n++
		}
	}
	return n
}

// bad are conditions of nodes that must not be true, and good are those that must be if they are there.
var (
	bad  = []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable}
	good = corev1.NodeConditionType(nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady)
)

func pressure(node *corev1.Node) []error {
	var errs []error
	for _, c := range node.Status.Conditions {
		if slices.Contains(bad, c.Type) && c.Status == corev1.ConditionTrue || c.Type == good && c.Status == corev1.ConditionFalse {
			errs = append(errs, fmt.Errorf("Node %q: %s is %s: %s", node.Name, c.Type, c.Status, c.Message))
		}
	}
	return errs
}

// agentWorks returns why the agent of a node seems not to work.
func agentWorks(node *corev1.Node, leases []coordinationv1.Lease, now time.Time) error {
	index := slices.IndexFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == nodeagentconfigv1alpha1.NodeLeasePrefix+node.Name })
	if index < 0 {
		if now.Sub(node.CreationTimestamp.Time) < agentPatience {
			return nil
		}
		return fmt.Errorf("Node %q: gardener-node-agent has never renewed its Lease", node.Name)
	}
	if expired(&leases[index], now) {
		return fmt.Errorf("Node %q: gardener-node-agent does not renew its Lease", node.Name)
	}
	return nil
}

// expired is whether nobody has renewed a Lease in time.
func expired(lease *coordinationv1.Lease, now time.Time) bool {
	s := lease.Spec
	return s.RenewTime == nil || s.LeaseDurationSeconds == nil || now.Sub(s.RenewTime.Time) > time.Duration(*s.LeaseDurationSeconds)*time.Second
}

// configApplied returns why a node is not as it was told to be. What a node was told that is about to be replaced is not there any more.
// Agents begin one after the other, each after a delay of its own.
func configApplied(node *corev1.Node, configs []metav1.PartialObjectMetadata, now time.Time) error {
	index := slices.IndexFunc(configs, func(c metav1.PartialObjectMetadata) bool {
		return c.Name == node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]
	})
	if index < 0 {
		return nil
	}
	want := configs[index].Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig]
	have := node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
	delay, _ := time.ParseDuration(node.Annotations[constants.NodeAgentReconciliationDelay]) // what is no duration is no delay
	begin := writtenAt(&configs[index])
	if node.CreationTimestamp.After(begin) {
		begin = node.CreationTimestamp.Time
	}
	if have == want || now.Sub(begin) < delay+applyPatience {
		return nil
	}
	if have == "" {
		return fmt.Errorf("Node %q: no operating system config was applied yet", node.Name)
	}
	return fmt.Errorf("Node %q: the operating system config that was applied is out of date", node.Name)
}

// writtenAt is when an object was last written.
func writtenAt(object *metav1.PartialObjectMetadata) time.Time {
	at := object.CreationTimestamp.Time
	for _, f := range object.ManagedFields {
		if f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// kubeletVersion returns whether a kubelet is not of the version of its worker pool. A spec that was not acted on yet does not count.
func kubeletVersion(shoot *corev1beta1.Shoot, node *corev1.Node) error {
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
		return nil // the API server refuses such a spec
	}
	have, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil || have.Major() != want.Major() || have.Minor() != want.Minor() || have.Patch() != want.Patch() {
		return fmt.Errorf("Node %q: the kubelet has version %q instead of %q", node.Name, node.Status.NodeInfo.KubeletVersion, text)
	}
	return nil
}
