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

func TestJudgeNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *nodesSeen)
		want   []string
	}{
		"all is well": {change: func(*corev1beta1.Shoot, *nodesSeen) {}},
		"no nodes":    {change: func(_ *corev1beta1.Shoot, n *nodesSeen) { n.nodes = nil }, want: []string{"no node has joined the cluster yet"}},
		"the kubelet says no": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "m"}
		}, want: []string{`Node "n" is not ready: m`}},
		"no memory": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.nodes[0].Status.Conditions = append(n.nodes[0].Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue, Message: "m"})
		}, want: []string{`Node "n": MemoryPressure is True: m`}},
		"a unit failed": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.nodes[0].Status.Conditions = append(n.nodes[0].Status.Conditions, corev1.NodeCondition{Type: "SystemdUnitsReady", Status: corev1.ConditionFalse, Message: "unit x failed"})
		}, want: []string{`Node "n": SystemdUnitsReady is False: unit x failed`}},
		"the agent died": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.leases[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Minute)))
		}, want: []string{`Node "n": gardener-node-agent does not renew its Lease`}},
		"the agent never lived": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) { n.leases = nil }, want: []string{`Node "n": gardener-node-agent has never renewed its Lease`}},
		"the agent may be starting": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.leases, n.nodes[0].CreationTimestamp = nil, metav1.NewTime(now.Add(-time.Minute))
		}},
		"an old configuration": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.configs[0].Annotations["checksum/data-script"] = "two"
		}, want: []string{`Node "n": the operating system config that was applied is out of date`}},
		"a new configuration": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.configs[0].Annotations["checksum/data-script"], n.nodes[0].Annotations["node-agent.gardener.cloud/reconciliation-delay"] = "two", "150s"
			n.configs[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-4 * time.Minute)))}}
		}},
		"a configuration that should have been applied by now": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.configs[0].Annotations["checksum/data-script"], n.nodes[0].Annotations["node-agent.gardener.cloud/reconciliation-delay"] = "two", "150s"
			n.configs[0].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(now.Add(-5 * time.Minute)))}}
		}, want: []string{`Node "n": the operating system config that was applied is out of date`}},
		"it goes to sleep": {change: func(s *corev1beta1.Shoot, n *nodesSeen) {
			s.Spec.Hibernation, n.nodes = &corev1beta1.Hibernation{Enabled: new(true)}, nil
		}},
		"no configuration": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) { n.nodes[0].Annotations = nil }, want: []string{`Node "n": no operating system config was applied yet`}},
		"about to be replaced": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.nodes[0].Annotations, n.nodes[0].Labels["worker.gardener.cloud/gardener-node-agent-secret-name"] = nil, "old"
		}},
		"an old kubelet": {change: func(s *corev1beta1.Shoot, _ *nodesSeen) { s.Spec.Kubernetes.Version = "1.36.3" }, want: []string{`Node "n": the kubelet has version "v1.35.1" instead of "1.36.3"`}},
		"the pool has a version of its own": {change: func(s *corev1beta1.Shoot, _ *nodesSeen) {
			s.Spec.Kubernetes.Version, s.Spec.Provider.Workers[0].Kubernetes = "1.36.3", &corev1beta1.WorkerKubernetes{Version: new("1.35.1")}
		}},
		"nobody has acted on the version yet": {change: func(s *corev1beta1.Shoot, _ *nodesSeen) { s.Spec.Kubernetes.Version, s.Generation = "1.36.3", 2 }},
		"too few": {change: func(s *corev1beta1.Shoot, n *nodesSeen) {
			s.Spec.Provider.Workers[0].Minimum, n.machines[0].Spec.Replicas = 3, 3
		}, want: []string{`worker pool "a" has 1 of at least 3 nodes`, "1 of 3 machines have joined the cluster as nodes"}},
		"too many": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) { n.nodes = append(n.nodes, n.nodes[0]) }, want: []string{"there are 2 nodes for 1 machines"}},
		"machines are being replaced": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			n.nodes, n.machines[0].Status.Replicas = append(n.nodes, n.nodes[0]), 2
		}},
		"one that is no machine": {change: func(_ *corev1beta1.Shoot, n *nodesSeen) {
			other := *n.nodes[0].DeepCopy()
			other.Annotations["node.machine.sapcloud.io/not-managed-by-mcm"] = "1"
			n.nodes = append(n.nodes, other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, seen := &corev1beta1.Shoot{}, &nodesSeen{
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
				configs:  []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"checksum/data-script": "one"}}}},
				machines: []machinev1alpha1.MachineDeployment{{Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 1}}},
			}
			shoot.Spec.Kubernetes.Version, shoot.Generation, shoot.Status.ObservedGeneration = "1.35.1", 1, 1
			shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", Minimum: 1}}
			tc.change(shoot, seen)
			var got []string
			for _, err := range judgeNodes(shoot, seen, now) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judgeNodes() (-want +got):\n%s", diff)
			}
		})
	}
}
