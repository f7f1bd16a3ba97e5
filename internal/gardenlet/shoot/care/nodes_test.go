package care

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestNodeProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *observedNodes)
		want   []string
	}{
		"no problem": {change: func(*corev1beta1.Shoot, *observedNodes) {}},
		"no nodes":   {change: func(_ *corev1beta1.Shoot, n *observedNodes) { n.nodes = nil }, want: []string{"no node has joined the cluster yet"}},
		"the kubelet is not ready": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "m"}
		}, want: []string{`Node "n" is not ready: m`}},
		"a failed machine is kept": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			kept := n.nodes[0].DeepCopy()
			kept.Name, kept.Spec.Taints = "k", []corev1.Taint{{Key: machinev1alpha1.NodePreservedKey, Effect: corev1.TaintEffectNoSchedule}}
			kept.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "m"}
			n.nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "m"}
			n.nodes = []corev1.Node{*kept, n.nodes[0]}
			n.machineDeployments[0].Spec.Replicas = 2
		}, want: []string{`Node "n" is not ready: m`, `Node "k" is not ready: m (node and backing machine preserved by MCM)`}},
		"memory pressure": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes[0].Status.Conditions = append(n.nodes[0].Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue, Message: "m"})
		}, want: []string{`Node "n": MemoryPressure is True: m`}},
		"a systemd unit failed": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes[0].Status.Conditions = append(n.nodes[0].Status.Conditions, corev1.NodeCondition{Type: "SystemdUnitsReady", Status: corev1.ConditionFalse, Message: "unit x failed"})
		}, want: []string{`Node "n": SystemdUnitsReady is False: unit x failed`}},
		"the agent does not renew its Lease": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.leases[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Minute)))
		}, want: []string{`Node "n": gardener-node-agent does not renew its Lease`}},
		"the agent never renewed its Lease": {change: func(_ *corev1beta1.Shoot, n *observedNodes) { n.leases = nil }, want: []string{`Node "n": gardener-node-agent has never renewed its Lease`}},
		"the agent may be starting": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.leases, n.nodes[0].CreationTimestamp = nil, metav1.NewTime(now.Add(-time.Minute))
		}},
		"an outdated OperatingSystemConfig": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.osConfigs[0].Annotations["checksum/data-script"] = "two"
		}, want: []string{`Node "n": the applied OperatingSystemConfig is outdated`}},
		"a new OperatingSystemConfig, within the delay": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.osConfigs[0].Annotations["checksum/data-script"], n.nodes[0].Annotations["node-agent.gardener.cloud/reconciliation-delay"] = "two", "150s"
			n.osConfigs[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-4 * time.Minute)))}}
		}},
		"a new OperatingSystemConfig, after the delay": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.osConfigs[0].Annotations["checksum/data-script"], n.nodes[0].Annotations["node-agent.gardener.cloud/reconciliation-delay"] = "two", "150s"
			n.osConfigs[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-5 * time.Minute)))}}
		}, want: []string{`Node "n": the applied OperatingSystemConfig is outdated`}},
		"being hibernated": {change: func(s *corev1beta1.Shoot, n *observedNodes) {
			s.Spec.Hibernation, n.nodes = &corev1beta1.Hibernation{Enabled: new(true)}, nil
		}},
		"no OperatingSystemConfig applied": {change: func(_ *corev1beta1.Shoot, n *observedNodes) { n.nodes[0].Annotations = nil }, want: []string{`Node "n": no OperatingSystemConfig was applied yet`}},
		"about to be replaced": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes[0].Annotations, n.nodes[0].Labels["worker.gardener.cloud/gardener-node-agent-secret-name"] = nil, "old"
		}},
		"an old kubelet": {change: func(s *corev1beta1.Shoot, _ *observedNodes) { s.Spec.Kubernetes.Version = "1.36.3" }, want: []string{`Node "n": the kubelet has version "v1.35.1" instead of "1.36.3"`}},
		"the pool has its own version": {change: func(s *corev1beta1.Shoot, _ *observedNodes) {
			s.Spec.Kubernetes.Version, s.Spec.Provider.Workers[0].Kubernetes = "1.36.3", &corev1beta1.WorkerKubernetes{Version: new("1.35.1")}
		}},
		"the version is not reconciled yet": {change: func(s *corev1beta1.Shoot, _ *observedNodes) { s.Spec.Kubernetes.Version, s.Generation = "1.36.3", 2 }},
		"waiting for its update in place": {change: func(s *corev1beta1.Shoot, n *observedNodes) {
			s.Spec.Kubernetes.Version, n.osConfigs[0].Annotations["checksum/data-script"] = "1.36.3", "two"
			n.nodes[0].Labels["node.machine.sapcloud.io/candidate-for-update"] = "true"
		}},
		"an update in place that failed": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes[0].Labels["node.machine.sapcloud.io/candidate-for-update"] = "true"
			n.nodes[0].Labels["node.machine.sapcloud.io/update-result"] = "failed"
			n.nodes[0].Annotations["node.machine.sapcloud.io/update-failed-reason"] = "no space left"
		}, want: []string{`Node "n" could not be updated in place: no space left`}},
		"too few nodes": {change: func(s *corev1beta1.Shoot, n *observedNodes) {
			s.Spec.Provider.Workers[0].Minimum, n.machineDeployments[0].Spec.Replicas = 3, 3
		}, want: []string{`worker pool "a" has 1 of at least 3 nodes`, "1 of 3 machines have joined the cluster as nodes"}},
		"too many nodes": {change: func(_ *corev1beta1.Shoot, n *observedNodes) { n.nodes = append(n.nodes, n.nodes[0]) }, want: []string{"there are 2 nodes for 1 machines"}},
		"machines are being replaced": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			n.nodes, n.machineDeployments[0].Status.Replicas = append(n.nodes, n.nodes[0]), 2
		}},
		"a node without a machine": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			other := *n.nodes[0].DeepCopy()
			other.Name, other.Status.NodeInfo.KubeletVersion, other.Annotations = "own", "v1.30.0", map[string]string{"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
			n.nodes = append(n.nodes, other)
		}},
		"a node without a machine that is not ready": {change: func(_ *corev1beta1.Shoot, n *observedNodes) {
			other := *n.nodes[0].DeepCopy()
			other.Name, other.Annotations = "own", map[string]string{"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
			other.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "m"}
			n.nodes = append(n.nodes, other)
		}, want: []string{`Node "own" is not ready: m`}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, o := &corev1beta1.Shoot{}, &observed{observedNodes: observedNodes{
				nodes: []corev1.Node{{
					ObjectMeta: metav1.ObjectMeta{
						Name:        "n",
						Labels:      map[string]string{"worker.gardener.cloud/pool": "a", "worker.gardener.cloud/gardener-node-agent-secret-name": "c"},
						Annotations: map[string]string{"checksum/cloud-config-data": "one"},
					},
					Status: corev1.NodeStatus{
						Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.35.1"},
					},
				}},
				leases: []coordinationv1.Lease{{
					ObjectMeta: metav1.ObjectMeta{Name: "gardener-node-agent-n"},
					Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now)), LeaseDurationSeconds: new(int32(40))},
				}},
				osConfigs:          []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"checksum/data-script": "one"}}}},
				machineDeployments: []machinev1alpha1.MachineDeployment{{Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 1}}},
			}}
			shoot.Spec.Kubernetes.Version, shoot.Generation, shoot.Status.ObservedGeneration = "1.35.1", 1, 1
			shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", Minimum: 1}}
			tc.change(shoot, &o.observedNodes)
			var got []string
			for _, err := range nodeProblems(shoot, o, now) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodeProblems() (-want +got):\n%s", diff)
			}
		})
	}
}
