package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// unused are plugins that take no part in the question whether a pod fits on a node, or that need parts of a scheduler that are not here:
// there is no manager of resource claims, and nothing is preempted.
var unused = []string{names.DynamicResources, names.DefaultPreemption, names.GangScheduling, names.TopologyPlacementGenerator, names.PodGroupPodsCount}

// simulator answers by the plugins of the kube-scheduler, with its default configuration. It is for one goroutine.
type simulator struct {
	framework framework.Framework
	// current is the simulation that the plugins look at: they take a lister once.
	current *lister
}

// newSimulator registers what the plugins read with the informers, which must be started afterwards.
func newSimulator(ctx context.Context, client kubernetes.Interface, factory informers.SharedInformerFactory) (plan.Simulator, error) {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("default configuration of the scheduler: %w", err)
	}
	profile := defaults.Profiles[0]
	enabled := &profile.Plugins.MultiPoint.Enabled
	*enabled = slices.DeleteFunc(*enabled, func(p config.Plugin) bool { return slices.Contains(unused, p.Name) })
	current := &lister{}
	f, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), &profile,
		runtime.WithClientSet(client), runtime.WithInformerFactory(factory), runtime.WithSnapshotSharedLister(current),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		runtime.WithLogger(klog.FromContext(ctx)),
	)
	if err != nil {
		return nil, fmt.Errorf("plugins of the scheduler: %w", err)
	}
	return &simulator{framework: f, current: current}, nil
}

// Start implements plan.Simulator.
func (s *simulator) Start(nodes []plan.Occupied) plan.Simulation {
	c := &cluster{simulator: s, at: map[string]int{}}
	for _, node := range nodes {
		c.Add(node)
	}
	return c
}

// cluster is a simulation. Infos are never changed, but replaced, as forks share them.
type cluster struct {
	simulator *simulator
	infos     []fwk.NodeInfo
	at        map[string]int // by name of the node
}

// Fork implements plan.Simulation.
func (c *cluster) Fork() plan.Simulation {
	return &cluster{simulator: c.simulator, infos: slices.Clone(c.infos), at: maps.Clone(c.at)}
}

// Add implements plan.Simulation.
func (c *cluster) Add(node plan.Occupied) {
	info := framework.NewNodeInfo(node.Pods...)
	info.SetNode(node.Node)
	c.at[node.Node.Name] = len(c.infos)
	c.infos = append(c.infos, info)
}

// Remove implements plan.Simulation.
func (c *cluster) Remove(name string) {
	at, ok := c.at[name]
	if !ok {
		return
	}
	last := len(c.infos) - 1
	c.infos[at] = c.infos[last]
	c.at[c.infos[at].Node().Name] = at
	c.infos = c.infos[:last]
	delete(c.at, name)
}

// Place implements plan.Simulation.
func (c *cluster) Place(ctx context.Context, pod *corev1.Pod, nodes []string) (string, error) {
	c.simulator.current.infos, c.simulator.current.at = c.infos, c.at
	state := framework.NewCycleState()
	limited, status, _ := c.simulator.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return "", notFit(status)
	}
	var refused *plan.NotFit
	for _, name := range nodes {
		at, ok := c.at[name]
		if !ok || !limited.AllNodes() && !limited.NodeNames.Has(name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		status := c.simulator.framework.RunFilterPlugins(ctx, state, pod, c.infos[at])
		if !status.IsSuccess() {
			err := notFit(status)
			if !errors.As(err, &refused) {
				return "", err
			}
			continue
		}
		info := c.infos[at].Snapshot().(*framework.NodeInfo) //nolint:forcetypeassert // it was created above
		placed := pod.DeepCopy()
		placed.Spec.NodeName = name
		info.AddPod(placed)
		c.infos[at] = info
		return name, nil
	}
	if refused == nil {
		refused = &plan.NotFit{}
	}
	return "", refused
}

// notFit returns what plugins say about a pod: a *plan.NotFit, or another error if a plugin failed.
func notFit(status *fwk.Status) error {
	if status.IsRejected() {
		return &plan.NotFit{Reasons: status.Reasons()}
	}
	return status.AsError()
}

// lister shows plugins the nodes of the current simulation.
type lister struct {
	infos []fwk.NodeInfo
	at    map[string]int
}

var (
	_ fwk.SharedLister      = &lister{}
	_ fwk.NodeInfoLister    = &lister{}
	_ fwk.StorageInfoLister = &lister{}
)

// NodeInfos implements fwk.SharedLister.
func (l *lister) NodeInfos() fwk.NodeInfoLister { return l }

// StorageInfos implements fwk.SharedLister.
func (l *lister) StorageInfos() fwk.StorageInfoLister { return l }

// PodGroupStates implements fwk.SharedLister. Only plugins that are not used ask for them.
func (l *lister) PodGroupStates() fwk.PodGroupStateLister { return nil }

// List implements fwk.NodeInfoLister.
func (l *lister) List() ([]fwk.NodeInfo, error) { return l.infos, nil }

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return l.with(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 }), nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.with(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 }), nil
}

func (l *lister) with(what func(fwk.NodeInfo) bool) []fwk.NodeInfo {
	var out []fwk.NodeInfo
	for _, info := range l.infos {
		if what(info) {
			out = append(out, info)
		}
	}
	return out
}

// Get implements fwk.NodeInfoLister.
func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	at, ok := l.at[name]
	if !ok {
		return nil, fmt.Errorf("node %q not found", name)
	}
	return l.infos[at], nil
}

// IsPVCUsedByPods implements fwk.StorageInfoLister.
func (l *lister) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(l.infos, func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}
