package clusterautoscaler

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/shootaccess"
)

// expendableCutoff is the priority below which pods need no node: those that only reserve capacity have -10 and higher.
const expendableCutoff = -10

// flags are those of the process. Some occur several times.
func flags(v Values) []string {
	c := &corev1beta1.ClusterAutoscaler{}
	if v.Config != nil {
		c = v.Config.DeepCopy()
	}
	corev1beta1.DefaultClusterAutoscaler(c)
	var out []string
	add := func(flag string, value any) {
		out = append(out, fmt.Sprintf("--%s=%v", flag, value))
	}
	duration := func(flag string, value *metav1.Duration) { add(flag, value.Duration) }

	add("address", fmt.Sprintf(":%d", port))
	add("kubeconfig", shootaccess.PathKubeconfig)
	add("cloud-provider", "mcm")
	add("stderrthreshold", "info")
	add("skip-nodes-with-system-pods", false)
	add("skip-nodes-with-local-storage", false)
	add("expendable-pods-priority-cutoff", expendableCutoff)
	add("balance-similar-node-groups", true)
	// New nodes have it until pods can run on them.
	add("ignore-taint", constants.TaintNodeCriticalComponentsNotReady)
	for _, taint := range c.IgnoreTaints { //nolint:staticcheck // clients of before set it
		add("ignore-taint", taint)
	}
	for _, taint := range c.StartupTaints {
		add("startup-taint", taint)
	}
	for _, taint := range c.StatusTaints {
		add("status-taint", taint)
	}
	duration("scale-down-delay-after-add", c.ScaleDownDelayAfterAdd)
	duration("scale-down-delay-after-delete", c.ScaleDownDelayAfterDelete)
	duration("scale-down-delay-after-failure", c.ScaleDownDelayAfterFailure)
	duration("scale-down-unneeded-time", c.ScaleDownUnneededTime)
	add("scale-down-utilization-threshold", fmt.Sprintf("%f", *c.ScaleDownUtilizationThreshold))
	duration("scan-interval", c.ScanInterval)
	duration("new-pod-scale-up-delay", c.NewPodScaleUpDelay)
	duration("max-binpacking-time", c.MaxBinpackingTime)
	add("expander", expander(*c.Expander, v.MachineDeployments))
	duration("max-node-provision-time", c.MaxNodeProvisionTime)
	add("max-graceful-termination-sec", *c.MaxGracefulTerminationSeconds)
	duration("initial-node-group-backoff-duration", c.InitialNodeGroupBackoffDuration)
	duration("max-node-group-backoff-duration", c.MaxNodeGroupBackoffDuration)
	duration("node-group-backoff-reset-timeout", c.NodeGroupBackoffResetTimeout)
	add("max-scale-down-parallelism", *c.MaxScaleDownParallelism)
	add("max-drain-parallelism", *c.MaxDrainParallelism)
	add("ignore-daemonsets-utilization", *c.IgnoreDaemonsetsUtilization)
	add("emit-per-nodegroup-metrics", *c.EmitPerNodeGroupMetrics)
	add("max-nodes-total", v.MaxNodesTotal)
	if slices.ContainsFunc(v.MachineDeployments, func(d extensionsv1alpha1.MachineDeployment) bool {
		return ptr.Deref(d.AutoPreserveFailedMachineMax, 0) > 0
	}) {
		add("max-total-unready-percentage", 100) // nodes of preserved machines may stay unready
	}
	add("v", *c.Verbosity)
	for _, d := range v.MachineDeployments {
		add("nodes", fmt.Sprintf("%d:%d:%s.%s", d.Minimum, d.Maximum, v.Namespace, d.Name))
	}
	return out
}

// expander is the list of expanders. Priorities of pools count before all others, unless the list says where they do.
func expander(mode corev1beta1.ExpanderMode, deployments []extensionsv1alpha1.MachineDeployment) string {
	list := string(mode)
	if hasPriorities(deployments) && !slices.Contains(strings.Split(list, ","), string(corev1beta1.ExpanderPriority)) {
		list = string(corev1beta1.ExpanderPriority) + "," + list
	}
	return list
}

// hasPriorities reports whether a pool sets its priority.
func hasPriorities(deployments []extensionsv1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(deployments, func(d extensionsv1alpha1.MachineDeployment) bool { return d.Priority != nil })
}
