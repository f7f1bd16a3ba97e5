package landscape

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/host"
)

// Status is the current state of a landscape.
type Status struct {
	Name       string          `json:"name"`
	Dir        string          `json:"dir"`
	Subnet     string          `json:"subnet"`
	Registry   string          `json:"registry"`
	Containers []ServiceStatus `json:"services"`
	Clusters   []ClusterStatus `json:"clusters"`
	// Garden is nil if there are clusters only.
	Garden *GardenStatus `json:"garden,omitempty"`
	// Memory is the memory of the landscape's processes, by the name of their program, the largest first.
	Memory []MemoryStatus `json:"memory"`
	// Problems say what does not run or is not healthy, a line each.
	Problems []string `json:"problems,omitempty"`
}

// ServiceStatus is a container that serves machines, or a server for provider-hosts.
type ServiceStatus struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
}

// ClusterStatus is a cluster and its machines.
type ClusterStatus struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Kubeconfig string          `json:"kubeconfig"`
	Pool       string          `json:"loadBalancerPool"`
	Machines   []MachineStatus `json:"machines"`
	// Pods and PodsReady count the pods of all namespaces, without those that are being deleted or replaced.
	Pods      int `json:"pods"`
	PodsReady int `json:"podsReady"`
	// Unready are the pods that are not ready.
	Unready []PodStatus `json:"unready,omitempty"`
	// Problem says why the cluster cannot be read; empty if it can.
	Problem string `json:"problem,omitempty"`
}

// MachineStatus is a machine and the node on it.
type MachineStatus struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	Zone    string     `json:"zone"`
	Running bool       `json:"running"`
	// Ready reports whether the node is ready; Problem says why not.
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"`
}

// PodStatus is a pod that is not ready.
type PodStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Problem says why.
	Problem string `json:"problem"`
}

// MemoryStatus is the memory of all processes of one program, in bytes.
type MemoryStatus struct {
	Program      string `json:"program"`
	Processes    int    `json:"processes"`
	Resident     int64  `json:"residentBytes"`
	Proportional int64  `json:"proportionalBytes"`
}

// Healthy reports whether there are no problems.
func (s *Status) Healthy() bool { return len(s.Problems) == 0 }

// problems are the problems of all parts of the landscape.
func (s *Status) problems() []string {
	var all []string
	add := func(problem, format string, of ...any) {
		if problem != "" {
			all = append(all, fmt.Sprintf(format, of...)+": "+problem)
		}
	}
	for _, service := range s.Containers {
		if !service.Running {
			add("it does not run", "service %s", service.Name)
		}
	}
	for _, cluster := range s.Clusters {
		add(cluster.Problem, "cluster %s", cluster.Name)
		for _, machine := range cluster.Machines {
			add(machine.Problem, "machine %s", machine.Name)
		}
		for _, pod := range cluster.Unready {
			add(pod.Problem, "namespace %s of cluster %s", pod.Namespace, cluster.Name)
		}
	}
	if s.Garden == nil {
		return all
	}
	add(s.Garden.Problem, "garden")
	for _, component := range s.Garden.Components {
		add(component.Problem, "component %s/%s of cluster %s", component.Namespace, component.Name, component.Cluster)
	}
	for _, seed := range s.Garden.Seeds {
		add(seed.Problem, "seed %s", seed.Name)
	}
	for _, shoot := range s.Garden.Shoots {
		add(shoot.Problem, "shoot %s/%s", shoot.Namespace, shoot.Name)
	}
	return all
}

// statusTimeout is how long an API server may take to answer; one that works needs a fraction of it.
const statusTimeout = 5 * time.Second

// Status reads the state of the landscape. It changes nothing, and an API server that does not answer is part of the result.
func (l *Landscape) Status(ctx context.Context) (*Status, error) {
	if len(l.state.Clusters) == 0 {
		_, err := l.Cluster(RuntimeCluster)
		return nil, err
	}
	status := &Status{Name: l.Name, Dir: l.Dir, Subnet: l.network().Subnet().String(), Registry: l.registryAddress().String()}
	names := append([]string{registryContainer, pushContainer, resolverContainer}, machineNames(l.state.hosts())...)
	for _, name := range names {
		status.Containers = append(status.Containers, ServiceStatus{Name: name, Running: l.running(name)})
	}
	for _, cluster := range l.state.Clusters {
		status.Clusters = append(status.Clusters, l.clusterStatus(ctx, cluster))
	}
	status.Garden = l.gardenStatus(ctx)
	status.Memory = l.memory()
	status.Problems = status.problems()
	return status, nil
}

// DiskUse is the size of the landscape's directory on disk, in bytes. Files that are deleted meanwhile do not count.
func (l *Landscape) DiskUse() int64 {
	const block = 512 // the unit of st_blocks, whatever the file system's
	var total int64
	_ = filepath.WalkDir(l.Dir, func(path string, _ fs.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil && unix.Lstat(path, &stat) == nil {
			total += stat.Blocks * block
		}
		return nil
	})
	return total
}

func (l *Landscape) running(container string) bool {
	return len(host.CgroupProcesses(l.cgroup()+"/"+container)) > 0
}

func (l *Landscape) clusterStatus(ctx context.Context, cluster Cluster) ClusterStatus {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status := ClusterStatus{
		Name: cluster.Name, Version: cluster.Version, Kubeconfig: l.KubeconfigFile(cluster.Name), Pool: l.network().Pool(cluster.Number).String(),
	}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := l.list(ctx, cluster.Name, nodes, pods); err != nil {
		status.Problem = err.Error()
	}
	for _, machine := range cluster.Machines {
		m := MachineStatus{Name: machine.Name, Address: l.network().Machine(machine.Number), Zone: machine.zone(), Running: l.running(machine.Name)}
		index := slices.IndexFunc(nodes.Items, func(node corev1.Node) bool { return node.Name == machine.Name })
		switch {
		case !m.Running:
			m.Problem = "the machine does not run"
		case index < 0:
			m.Problem = "node not found"
		default:
			if err := kube.NodeReady(&nodes.Items[index]); err != nil {
				m.Problem = err.Error()
			}
			m.Ready = m.Problem == ""
		}
		status.Machines = append(status.Machines, m)
	}
	for i := range pods.Items {
		if !expected(&pods.Items[i]) {
			continue
		}
		status.Pods++
		if err := kube.PodReady(&pods.Items[i]); err != nil {
			status.Unready = append(status.Unready, PodStatus{pods.Items[i].Namespace, pods.Items[i].Name, err.Error()})
			continue
		}
		status.PodsReady++
	}
	return status
}

func (l *Landscape) list(ctx context.Context, cluster string, lists ...client.ObjectList) error {
	c, err := l.Client(cluster)
	if err != nil {
		return err
	}
	for _, list := range lists {
		if err := c.List(ctx, list); err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
	}
	return nil
}

func (l *Landscape) memory() []MemoryStatus {
	programs := map[string]host.Memory{}
	// containerd and its shims run outside of the landscape's control group: they create and remove it.
	pids := slices.Concat(host.CgroupProcesses(l.cgroup()), host.ProcessesWithArgument(l.daemon(nil).State))
	for _, pid := range pids {
		if name, memory := host.ProcessMemory(pid); name != "" {
			programs[name] = programs[name].Add(memory)
		}
	}
	all := make([]MemoryStatus, 0, len(programs))
	for program, m := range programs {
		all = append(all, MemoryStatus{Program: program, Processes: m.Processes, Resident: m.Resident, Proportional: m.Proportional})
	}
	slices.SortFunc(all, func(a, b MemoryStatus) int {
		return cmp.Or(cmp.Compare(b.Proportional, a.Proportional), cmp.Compare(a.Program, b.Program))
	})
	return all
}
