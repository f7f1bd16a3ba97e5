package clusterautoscaler

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// Options are the flags. Their names, meanings and defaults are those of the original.
type Options struct {
	// Kubeconfig is the file for the cluster whose nodes are scaled. Without it, that of the environment variable TARGET_KUBECONFIG is used.
	Kubeconfig string
	// Address serves metrics, and the health check.
	Address string
	// Nodes are the groups.
	Nodes []NodesOption
	// Namespace is that of the status, of priorities and of the Lease.
	Namespace string
	// LeaderElect makes it wait until it leads.
	LeaderElect bool
	// Expanders choose among groups, see plan.Expander.
	Expanders []string

	scanInterval, newPodScaleUpDelay, maxBinpackingTime                time.Duration
	maxInactivity, maxFailing                                          time.Duration
	delayAfterAdd, delayAfterDelete, delayAfterFailure                 time.Duration
	backoffInitial, backoffMax, backoffReset, maxPodEvictionTime       time.Duration
	defaults                                                           plan.Options
	maxGracefulTermination, expendableCutoff, maxNodesTotal, okUnready int
	maxUnreadyPercentage                                               float64
	rules                                                              plan.Rules
	balance, scaleDown, perGroupMetrics, writeStatus                   bool
	startupTaints, statusTaints                                        list
	leaseDuration, renewDeadline, retryPeriod                          time.Duration
	leaseName                                                          string
}

// NodesOption is a group: --nodes=MIN:MAX:NAMESPACE.NAME.
type NodesOption struct {
	Min, Max        int
	Namespace, Name string
}

// list is a flag that may occur several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	*l = append(*l, value)
	return nil
}

const usage = `Example:
  CONTROL_NAMESPACE=shoot--dev--crazy cluster-autoscaler --kubeconfig=shoot.yaml --nodes=1:5:shoot--dev--crazy.shoot--dev--crazy-worker

cluster-autoscaler changes the replicas of MachineDeployments, so that all pods of a cluster can be scheduled, and idle nodes are removed. It
reads pods and nodes of the cluster of --kubeconfig. MachineDeployments are in the namespace $CONTROL_NAMESPACE of the cluster of
$CONTROL_KUBECONFIG or, without it, in the cluster that it runs in.

Flags:
`

// Parse reads the flags. Values of environment variables come from getenv.
func Parse(args []string, getenv func(string) string, out io.Writer) (Options, error) {
	o := Options{}
	f := flag.NewFlagSet("cluster-autoscaler", flag.ContinueOnError)
	f.SetOutput(out)
	klog.InitFlags(f)
	var nodes list
	var expander, cloudProvider string
	var ignoreTaints list
	d := &o.defaults
	f.StringVar(&o.Kubeconfig, "kubeconfig", getenv("TARGET_KUBECONFIG"), "kubeconfig of the cluster whose nodes are scaled (default: $TARGET_KUBECONFIG)")
	f.StringVar(&o.Address, "address", ":8085", "address of /metrics and /health-check; empty serves neither")
	f.StringVar(&cloudProvider, "cloud-provider", "mcm", "must be mcm")
	f.Var(&nodes, "nodes", "a group as MIN:MAX:NAMESPACE.NAME; once for each")
	f.StringVar(&o.Namespace, "namespace", "kube-system", "namespace of the ConfigMaps and the Lease")
	f.StringVar(&expander, "expander", plan.Random, "which group grows: a list of least-waste, most-pods, least-nodes, priority, random")
	f.DurationVar(&o.scanInterval, "scan-interval", 10*time.Second, "how often the cluster is checked at least; below 1s, it is checked every second")
	f.DurationVar(&o.newPodScaleUpDelay, "new-pod-scale-up-delay", 0, "how long a pod is pending before it counts")
	f.DurationVar(&o.maxBinpackingTime, "max-binpacking-time", 5*time.Minute, "how long placing pods may take")
	f.DurationVar(&o.maxInactivity, "max-inactivity", 10*time.Minute, "after which time without a check of the cluster the health check fails")
	f.DurationVar(&o.maxFailing, "max-failing-time", 15*time.Minute, "after which time with failed checks of the cluster only the health check fails")
	f.BoolVar(&o.scaleDown, "scale-down-enabled", true, "remove nodes")
	f.DurationVar(&o.delayAfterAdd, "scale-down-delay-after-add", 10*time.Minute, "how long after an addition no node is removed")
	f.DurationVar(&o.delayAfterDelete, "scale-down-delay-after-delete", 0, "how long after a removal no node is removed")
	f.DurationVar(&o.delayAfterFailure, "scale-down-delay-after-failure", 3*time.Minute, "how long after a failed removal no node is removed")
	f.DurationVar(&d.UnneededTime, "scale-down-unneeded-time", 10*time.Minute, "how long a node is idle before it is removed")
	f.DurationVar(&d.UnreadyTime, "scale-down-unready-time", 20*time.Minute, "how long a node is idle and not ready before it is removed")
	f.Float64Var(&d.UtilizationThreshold, "scale-down-utilization-threshold", 0.5, "below which part of its capacity a node is idle")
	f.Float64Var(&d.GPUUtilizationThreshold, "scale-down-gpu-utilization-threshold", 0.5, "the same for nodes with GPUs")
	f.DurationVar(&d.MaxNodeProvisionTime, "max-node-provision-time", 15*time.Minute, "how long a node may take to join")
	f.IntVar(&o.maxGracefulTermination, "max-graceful-termination-sec", 600, "how many seconds evicted pods have to end")
	f.DurationVar(&o.maxPodEvictionTime, "max-pod-eviction-time", 2*time.Minute, "how long an eviction is retried")
	f.IntVar(&o.rules.MaxEmpty, "max-empty-bulk-delete", 0, "how many empty nodes are removed at a time; 0 means as many as nodes in total")
	f.IntVar(&o.rules.MaxTotal, "max-scale-down-parallelism", 10, "how many nodes are removed at a time")
	f.IntVar(&o.rules.MaxDrained, "max-drain-parallelism", 1, "how many nodes with pods are removed at a time")
	f.BoolVar(&o.rules.IgnoreDaemonSets, "ignore-daemonsets-utilization", false, "leave pods of DaemonSets out when the use of a node is measured")
	f.BoolVar(&o.rules.KeepSystemPods, "skip-nodes-with-system-pods", true, "keep nodes with pods of kube-system that have no PodDisruptionBudget")
	f.BoolVar(&o.rules.KeepLocalStorage, "skip-nodes-with-local-storage", true, "keep nodes with pods that have local storage")
	f.BoolVar(&o.rules.KeepCustomControllerPods, "skip-nodes-with-custom-controller-pods", true, "keep nodes with pods of controllers that are not built in")
	f.IntVar(&o.rules.MinReplicas, "min-replica-count", 0, "keep nodes with pods of ReplicaSets that have fewer replicas")
	f.IntVar(&o.expendableCutoff, "expendable-pods-priority-cutoff", -10, "pods with a lower priority need no node")
	f.BoolVar(&o.balance, "balance-similar-node-groups", false, "keep groups that only differ in their zone at the same size")
	f.IntVar(&o.maxNodesTotal, "max-nodes-total", 0, "how many nodes there may be; 0 means no limit")
	f.Float64Var(&o.maxUnreadyPercentage, "max-total-unready-percentage", 45, "above which percentage of nodes that are not ready nothing is changed")
	f.IntVar(&o.okUnready, "ok-total-unready-count", 3, "how many nodes may be unready, whatever the percentage")
	f.DurationVar(&o.backoffInitial, "initial-node-group-backoff-duration", 5*time.Minute, "how long a group that failed to grow rests")
	f.DurationVar(&o.backoffMax, "max-node-group-backoff-duration", 30*time.Minute, "how long it rests after further failures at most")
	f.DurationVar(&o.backoffReset, "node-group-backoff-reset-timeout", 3*time.Hour, "after which time a failure counts as the first again")
	f.BoolVar(&o.perGroupMetrics, "emit-per-nodegroup-metrics", false, "have metrics of each group")
	f.BoolVar(&o.writeStatus, "write-status-configmap", true, "write the ConfigMap cluster-autoscaler-status")
	f.Var(&ignoreTaints, "ignore-taint", "the same as --startup-taint")
	f.Var(&o.startupTaints, "startup-taint", "taint of nodes that are starting; may occur several times")
	f.Var(&o.statusTaints, "status-taint", "taint that new nodes do not have; may occur several times")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "wait for the Lease")
	f.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the Lease is valid")
	f.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long renewing the Lease is retried")
	f.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "how long to wait between attempts")
	f.StringVar(&o.leaseName, "leader-elect-resource-name", Name, "name of the Lease")
	f.Usage = func() {
		fmt.Fprint(out, usage)
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.startupTaints = append(o.startupTaints, ignoreTaints...)
	var errs []error
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q; see --help", f.Arg(0)))
	}
	if cloudProvider != "mcm" {
		errs = append(errs, fmt.Errorf("--cloud-provider must be mcm, not %q", cloudProvider))
	}
	for _, text := range nodes {
		group, err := parseNodes(text)
		errs = append(errs, err)
		if namespace := getenv("CONTROL_NAMESPACE"); err == nil && namespace != "" && group.Namespace != namespace {
			errs = append(errs, fmt.Errorf("--nodes=%s: the namespace must be CONTROL_NAMESPACE, %q", text, namespace))
		}
		if err == nil && group.Max > 0 {
			o.Nodes = append(o.Nodes, group)
		}
	}
	o.Expanders = strings.Split(expander, ",")
	if err := plan.CheckExpanders(o.Expanders); err != nil {
		errs = append(errs, fmt.Errorf("--expander: %w", err))
	}
	for name, value := range map[string]float64{
		"scale-down-utilization-threshold": d.UtilizationThreshold, "scale-down-gpu-utilization-threshold": d.GPUUtilizationThreshold,
	} {
		if !(value >= 0 && value <= 1) {
			errs = append(errs, fmt.Errorf("--%s must be between 0 and 1, not %v", name, value))
		}
	}
	if o.scanInterval < 0 {
		errs = append(errs, fmt.Errorf("--scan-interval must not be negative, but is %s", o.scanInterval))
	}
	o.scanInterval = max(o.scanInterval, time.Second) // 0 is valid in a Shoot
	return o, errors.Join(errs...)
}

// parseNodes reads MIN:MAX:NAMESPACE.NAME.
func parseNodes(text string) (NodesOption, error) {
	out := NodesOption{}
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return out, fmt.Errorf("--nodes=%s: must be MIN:MAX:NAMESPACE.NAME", text)
	}
	var err1, err2 error
	out.Min, err1 = strconv.Atoi(parts[0])
	out.Max, err2 = strconv.Atoi(parts[1])
	found := false
	out.Namespace, out.Name, found = strings.Cut(parts[2], ".")
	if err1 != nil || err2 != nil || !found || out.Namespace == "" || out.Name == "" {
		return out, fmt.Errorf("--nodes=%s: must be MIN:MAX:NAMESPACE.NAME", text)
	}
	if out.Min < 0 || out.Max < out.Min {
		return out, fmt.Errorf("--nodes=%s: the minimum must not be negative, nor above the maximum", text)
	}
	return out, nil
}
