// Package nodes is the stage for the machines of a cluster, and for what runs on all of its nodes: OperatingSystemConfigs, the Worker,
// gardener-node-agents, the VPN tunnel, system components and kube-proxy.
package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/metricsserver"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/vpnshoot"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/managedresource"
)

// networkResource is the ManagedResource with the agents of the VPN tunnel, and with the API server proxy of each node.
const networkResource = "shoot-core-network"

// Inputs are what the tasks read. All functions are called when the task credentials is done; those that say so, later.
type Inputs struct {
	Run *stage.Run
	// IfPresent are tasks that OperatingSystemConfigs, system components and kube-proxy come after, if the flow has them: webhooks of extensions change
	// them, and read what these tasks write.
	IfPresent []string
	// OperatingSystemConfigs returns the values of all worker pools.
	OperatingSystemConfigs func() (operatingsystemconfig.Values, error)
	// Worker returns what sets the spec of the Worker, given the pools with their OperatingSystemConfigs. It is called when the task
	// infrastructure is done.
	Worker func([]Pool) (func(*extensionsv1alpha1.Worker), error)
	// MachineControllerManager returns the values of the machine-controller-manager, with a number of pods.
	MachineControllerManager func(replicas int32) (machinecontrollermanager.Values, error)
	// TunnelServer returns the values of the vpn-seed-server, with a number of pods.
	TunnelServer func(replicas int32) (vpnseedserver.Values, error)
	// TunnelAgent and APIServerProxy return those of the vpn-shoot and the API server proxy. They are called when the task infrastructure
	// is done.
	TunnelAgent    func() (vpnshoot.Values, error)
	APIServerProxy func() (apiserverproxy.Values, error)
	// CoreDNS, MetricsServer and NodeProblemDetector return those of system components.
	CoreDNS             func() (coredns.Values, error)
	MetricsServer       func() (metricsserver.Values, error)
	NodeProblemDetector func() (nodeproblemdetector.Values, error)
	// KubeProxy returns those of kube-proxy, given the nodes that exist. Nil means that it is not desired.
	KubeProxy func([]corev1.Node) (kubeproxy.Values, error)
	// NodeLocalDNS returns those of the node-local-dns. Nil means that it is not desired.
	NodeLocalDNS func() (nodelocaldns.Values, error)
	// Replicas is the number of pods of the vpn-seed-server and the machine-controller-manager.
	Replicas int32
	// Hibernates is whether the cluster is being hibernated: its nodes are deleted, so that nothing waits for what runs on them.
	Hibernates bool
	// Deletes is whether the cluster is being deleted.
	Deletes bool
	// Restores is whether the control plane is restored on another seed: the machine-controller-manager starts when its extension has restored the
	// machines, as it would delete what it does not know.
	Restores bool
	// ReplacesCAs is whether a rotation of CAs is prepared or completed.
	ReplacesCAs bool
	// NodeAgentDelay is within which time gardener-node-agents begin to apply a new configuration.
	NodeAgentDelay time.Duration
	// UpdatesInPlace is whether the nodes of any pool are updated in place when that changes.
	UpdatesInPlace bool
	// Result is filled by the task worker-deployed. Nil means that no other stage reads it.
	Result *Result
}

// Result is what the extension had reported when the Worker was written.
type Result struct {
	// Worker is the one from before. It is nil before the task worker-deployed is done.
	Worker *extensionsv1alpha1.Worker
}

// Pool is a worker pool with what its machines are created from.
type Pool struct {
	operatingsystemconfig.Pool
	// Provision and Reconcile are the OperatingSystemConfigs, as their extension has reconciled them.
	Provision, Reconcile *extensionsv1alpha1.OperatingSystemConfig
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	pools := &pools{}
	// Kubelets must not be newer than the kube-apiserver, and once they no longer trust an old CA, they refuse a kube-apiserver with its certificate.
	agents := flow.Do("node-agents", "Writing the configuration of gardener-node-agents", in.deployNodeAgents, "operating-system-configs", "kube-apiserver-ready")
	// The cluster-autoscaler must not start machines while they are deleted for a hibernation, or when pools have a fixed size.
	worker := flow.Do("worker-deployed", "Deploying Worker", func(ctx context.Context) error { return in.deployWorker(ctx, pools) },
		"operating-system-configs", "infrastructure", "kube-apiserver-ready", MachineControllerManagerTask).
		IfPresent("stop-cluster-autoscaler", "stale-cluster-autoscaler")
	var tasks []flow.Task
	if in.UpdatesInPlace {
		// A node agent that has no change for a node which was drained for its update reports that it is updated: it must find the new configuration by
		// then. The order does not depend on whether an update is known to be pending: machines may be changed before the extension has reported what they
		// have.
		worker.After = append(worker.After, "node-agents")
		if !in.Hibernates {
			tasks = append(tasks, flow.Await(stage.ExtensionTimeout, "node-agents-applied", "Waiting until the configuration of gardener-node-agents is applied",
				func(ctx context.Context) error {
					return in.Run.ManagedApplied(ctx, operatingsystemconfig.ManagedResourceName)
				}, "node-agents"))
			worker.After = append(worker.After, "node-agents-applied")
		}
	}
	tunnelTimeout, tunnel := stage.PodsTimeout, []func(*resourcesv1alpha1.ManagedResource) error{managedresource.Applied, managedresource.Healthy}
	if in.ReplacesCAs {
		// A new machine requests its certificates soon, and would keep those that an old kube-controller-manager signs. A Deployment that is
		// ready may still have old pods.
		tasks = append(tasks, flow.Await(stage.PodsTimeout, "old-kube-controller-manager-gone", "Waiting until old pods of kube-controller-manager have terminated",
			func(ctx context.Context) error { return in.Run.OldPodsGone(ctx, kubecontrollermanager.Labels()) }, "kube-controller-manager-ready"))
		worker.After = append(worker.After, "old-kube-controller-manager-gone")
		// A pod with old credentials would be rejected after the next step. If a node is lost just then, its machine is replaced first.
		tunnelTimeout, tunnel = stage.ExtensionTimeout, append(tunnel, managedresource.RolledOut)
	}
	tasks = append(tasks,
		flow.Do("vpn-seed-server", "Deploying vpn-seed-server", DeployTunnelServer(in, in.Replicas), "credentials").
			IfPresent(stage.BeforeWebhooks...),
		flow.Await(stage.ExtensionTimeout, "operating-system-configs", "Waiting until OperatingSystemConfigs are ready", func(ctx context.Context) error {
			return in.reconcileSystemConfigs(ctx, pools)
		}, "credentials", "cluster").IfPresent(stage.BeforeExtensions...).IfPresent(in.IfPresent...),
		agents,
		MachineControllerManager(in),
		worker,
		flow.Await(stage.ExtensionTimeout, "worker", "Waiting until Worker is ready", in.awaitWorker, "worker-deployed"),
		flow.Do("system-components", "Deploying system components", in.deploySystemComponents, "infrastructure").
			IfPresent(in.IfPresent...),
	)
	if in.KubeProxy != nil {
		tasks = append(tasks, flow.Do("kube-proxy", "Deploying kube-proxy", in.deployKubeProxy, "kube-apiserver-ready").IfPresent(in.IfPresent...))
	} else {
		tasks = append(tasks, flow.Do("stale-kube-proxy", "Deleting kube-proxy", func(ctx context.Context) error {
			return in.Run.DeleteManaged(ctx, kubeproxy.ManagedResourceName)
		}, "kube-apiserver-ready"))
	}
	if !in.Hibernates {
		tasks = append(tasks,
			flow.Await(tunnelTimeout, "tunnel", "Waiting until the VPN tunnel to the nodes is ready", func(ctx context.Context) error {
				return in.awaitTunnel(ctx, tunnel)
			}, "system-components", "vpn-seed-server", "worker"),
			flow.Await(stage.ExtensionTimeout+in.NodeAgentDelay, "nodes-updated", "Waiting until nodes have applied their OperatingSystemConfig", in.awaitNodeAgents,
				"node-agents", "tunnel"),
		)
	}
	if in.NodeLocalDNS == nil {
		tasks = append(tasks, flow.Do("stale-node-local-dns", "Deleting unused node-local-dns", in.deleteNodeLocalDNS, "system-components", "worker"))
	} else {
		tasks = append(tasks, flow.Do("node-local-dns-custom", "Deploying custom server blocks of node-local-dns", in.deployCustomDNS, "kube-apiserver-ready"))
	}
	return append(tasks, flow.Do("stale-operating-system-configs", "Deleting unused OperatingSystemConfigs", func(ctx context.Context) error {
		return in.deleteStaleSystemConfigs(ctx, pools)
	}, "worker", "node-agents"))
}

// DeployTunnelServer returns what a task does that deploys the vpn-seed-server with a number of pods.
func DeployTunnelServer(in Inputs, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		values, err := in.TunnelServer(replicas)
		if err != nil {
			return err
		}
		objects, err := vpnseedserver.Objects(values)
		if err != nil {
			return err
		}
		return in.Run.Apply(ctx, objects...)
	}
}

// awaitTunnel waits until both ends of the tunnel are as desired, and work.
func (in Inputs) awaitTunnel(ctx context.Context, checks []func(*resourcesv1alpha1.ManagedResource) error) error {
	if err := in.Run.DeploymentReady(ctx, vpnseedserver.Name); err != nil {
		return err
	}
	return stage.AwaitOne(ctx, in.Run.SeedAPI, in.Run.Namespace, networkResource, &resourcesv1alpha1.ManagedResourceList{},
		func(mr *resourcesv1alpha1.ManagedResource) error {
			for _, check := range checks {
				if err := check(mr); err != nil {
					return err
				}
			}
			return nil
		})
}

// pools are those whose OperatingSystemConfigs are reconciled. They are complete when the task operating-system-configs is done.
type pools struct {
	list []Pool
}
