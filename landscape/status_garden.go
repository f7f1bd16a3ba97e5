package landscape

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/host"
)

// GardenStatus is the garden, with its seeds and shoots.
type GardenStatus struct {
	// Components are the processes of the garden and of its seeds, without those of shoots.
	Components []ComponentStatus `json:"components"`
	Seeds      []SeedStatus      `json:"seeds"`
	Shoots     []ShootStatus     `json:"shoots"`
	// Problem says why the Garden is not ready, or cannot be read; empty if all is well.
	Problem string `json:"problem,omitempty"`
}

// ComponentStatus is a Deployment or StatefulSet.
type ComponentStatus struct {
	// Cluster is the cluster that it runs in.
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Version is the tag of its image.
	Version string `json:"version"`
	// Problem says why it is not healthy; empty if it is.
	Problem string         `json:"problem,omitempty"`
	Usage   ComponentUsage `json:"usage"`
}

// ComponentUsage is the memory and CPU time of a component's pods.
type ComponentUsage struct {
	Component string `json:"component"`
	Pods      int    `json:"pods"`
	// Proportional is the memory in bytes, in which each process has its share of pages that several use.
	Proportional int64 `json:"proportionalBytes"`
	// Processor is the time in seconds since the processes have started.
	Processor float64 `json:"processorSeconds"`
}

// SeedStatus is a seed.
type SeedStatus struct {
	Name string `json:"name"`
	// Version is the version of its gardenlet.
	Version    string            `json:"version"`
	Kubernetes string            `json:"kubernetesVersion"`
	Conditions []ConditionStatus `json:"conditions"`
	// Problem says why it is not ready; empty if it is.
	Problem string `json:"problem,omitempty"`
}

// ConditionStatus is a condition.
type ConditionStatus struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// ShootStatus is a shoot.
type ShootStatus struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Kubernetes string `json:"kubernetesVersion"`
	Seed       string `json:"seed,omitempty"`
	// LastOperation is its current operation, or the last one.
	LastOperation string            `json:"lastOperation"`
	Conditions    []ConditionStatus `json:"conditions"`
	Hibernated    bool              `json:"hibernated,omitempty"`
	// Problem says why it is not healthy; empty if it is.
	Problem string `json:"problem,omitempty"`
	// Machines and MachinesReady count its machines on the seeds of this landscape.
	Machines      int       `json:"machines"`
	MachinesReady int       `json:"machinesReady"`
	Created       time.Time `json:"created"`
	// ControlPlane is the usage of its control plane, by component and the largest first; Nodes is the usage of its machines.
	ControlPlane []ComponentUsage `json:"controlPlane"`
	Nodes        ComponentUsage   `json:"nodes"`
}

// gardenStatus reads the garden. It returns nil if the landscape has none.
func (l *Landscape) gardenStatus(ctx context.Context) *GardenStatus {
	if !l.HasGarden() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status := &GardenStatus{}
	var machines []machinev1alpha1.Machine
	var usage []map[string][]ComponentUsage
	var errs []error
	for _, cluster := range seedClusters(l.state.Clusters) {
		deployments, statefulSets, pods := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}
		if err := l.list(ctx, cluster.Name, deployments, statefulSets, pods); err != nil {
			continue // The status of the cluster says so.
		}
		used := UsageOf(pods.Items)
		status.Components = append(status.Components, components(cluster.Name, deployments.Items, statefulSets.Items, used)...)
		usage = append(usage, used)
		inCluster := &machinev1alpha1.MachineList{}
		// The CRD of Machines is only installed when the cluster is a seed.
		if err := l.list(ctx, cluster.Name, inCluster); !meta.IsNoMatchError(err) {
			errs = append(errs, err)
		}
		machines = append(machines, inCluster.Items...)
	}
	gardens := &operatorv1alpha1.GardenList{}
	if err := l.list(ctx, RuntimeCluster, gardens); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, gardenProblem(gardens.Items))
	}
	seeds, shoots := &corev1beta1.SeedList{}, &corev1beta1.ShootList{}
	if err := errors.Join(append(errs, l.list(ctx, VirtualGarden, seeds, shoots))...); err != nil {
		status.Problem = err.Error()
	}
	for i := range seeds.Items {
		status.Seeds = append(status.Seeds, seedStatus(&seeds.Items[i]))
	}
	for i := range shoots.Items {
		status.Shoots = append(status.Shoots, shootStatus(&shoots.Items[i], machines))
	}
	for _, used := range usage {
		status.addUsage(used, shoots.Items)
	}
	return status
}

// gardenProblem returns why the garden is not ready, or nil if it is.
func gardenProblem(gardens []operatorv1alpha1.Garden) error {
	if len(gardens) == 0 {
		return errNoGarden
	}
	return gardenReady(&gardens[0])
}

// addUsage adds memory and CPU time in one seed to shoots.
func (s *GardenStatus) addUsage(usage map[string][]ComponentUsage, shoots []corev1beta1.Shoot) {
	for i := range s.Shoots {
		controlPlane := shoots[i].Status.TechnicalID
		s.Shoots[i].ControlPlane = append(s.Shoots[i].ControlPlane, usage[controlPlane]...)
		for _, used := range usage[localv1alpha1.InfrastructureNamespace(controlPlane)] {
			if used.Component == MachineComponent {
				s.Shoots[i].Nodes = used
			}
		}
	}
}

func components(cluster string, deployments []appsv1.Deployment, statefulSets []appsv1.StatefulSet, usage map[string][]ComponentUsage) []ComponentStatus {
	var all []ComponentStatus
	add := func(object client.Object, template corev1.PodTemplateSpec) {
		if ns := object.GetNamespace(); ns != constants.GardenNamespace && ns != gateway.Namespace &&
			!strings.HasPrefix(ns, "extension-") && !strings.HasPrefix(ns, operatorv1alpha1.ExtensionRuntimeNamespacePrefix) {
			return
		}
		component := ComponentStatus{Cluster: cluster, Namespace: object.GetNamespace(), Name: object.GetName(), Version: version(template.Spec.Containers[0].Image)}
		if err := kube.Healthy(object); err != nil {
			component.Problem = err.Error()
		}
		for _, used := range usage[component.Namespace] {
			if used.Component == component.Name {
				component.Usage = used
			}
		}
		all = append(all, component)
	}
	for i := range deployments {
		add(&deployments[i], deployments[i].Spec.Template)
	}
	for i := range statefulSets {
		add(&statefulSets[i], statefulSets[i].Spec.Template)
	}
	slices.SortFunc(all, func(a, b ComponentStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// version is the tag of an image, or its digest if it has none.
func version(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}

func seedStatus(seed *corev1beta1.Seed) SeedStatus {
	status := SeedStatus{Name: seed.Name, Conditions: conditionsStatus(seed.Status.Conditions)}
	if seed.Status.Gardener != nil {
		status.Version = seed.Status.Gardener.Version
	}
	if seed.Status.KubernetesVersion != nil {
		status.Kubernetes = *seed.Status.KubernetesVersion
	}
	if err := seedReady(seed); err != nil {
		status.Problem = err.Error()
	}
	return status
}

func shootStatus(shoot *corev1beta1.Shoot, machines []machinev1alpha1.Machine) ShootStatus {
	status := ShootStatus{
		Namespace: shoot.Namespace, Name: shoot.Name, Kubernetes: shoot.Spec.Kubernetes.Version, LastOperation: kube.ShootOperation(shoot),
		Conditions: conditionsStatus(shoot.Status.Conditions), Hibernated: shoot.Status.Hibernated, Created: shoot.CreationTimestamp.Time,
	}
	if shoot.Spec.SeedName != nil {
		status.Seed = *shoot.Spec.SeedName
	}
	if err := kube.ShootHealthy(shoot); err != nil {
		status.Problem = err.Error()
	}
	for _, machine := range machines {
		if machine.Namespace != shoot.Status.TechnicalID {
			continue
		}
		status.Machines++
		if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
			status.MachinesReady++
		}
	}
	return status
}

func conditionsStatus(conditions []corev1beta1.Condition) []ConditionStatus {
	all := make([]ConditionStatus, 0, len(conditions))
	for _, condition := range conditions {
		status := ConditionStatus{Type: string(condition.Type), Status: string(condition.Status)}
		if condition.Status != corev1beta1.ConditionTrue {
			status.Message = condition.Message
		}
		all = append(all, status)
	}
	return all
}

// MachineComponent is the component of the pods that are machines of shoots.
const MachineComponent = "machine"

// UsageOf measures pods of this computer: the usage of their components by namespace, the largest first.
func UsageOf(pods []corev1.Pod) map[string][]ComponentUsage {
	wanted := map[string]bool{}
	for _, pod := range pods {
		wanted[string(pod.UID)] = true
	}
	measured := host.PodsUsage(func(uid string) bool { return wanted[uid] })
	usage := map[string][]ComponentUsage{}
	for i := range pods {
		pod := &pods[i]
		usage[pod.Namespace] = addUsage(usage[pod.Namespace], componentOf(pod), measured[string(pod.UID)])
	}
	for _, all := range usage {
		largestFirst(all)
	}
	return usage
}

// UsageOfMachine measures a machine that is a pod of this computer: the usage of the components whose pods run on its node, and of
// programs outside of pods, the largest first.
func UsageOfMachine(machine *corev1.Pod, pods []corev1.Pod) []ComponentUsage {
	inPods, programs := host.MachineUsage(string(machine.UID))
	var usage []ComponentUsage
	for i := range pods {
		if measured, ok := inPods[string(pods[i].UID)]; ok {
			usage = addUsage(usage, componentOf(&pods[i]), measured)
		}
	}
	for program, measured := range programs {
		usage = addUsage(usage, program, measured)
	}
	largestFirst(usage)
	return usage
}

// addUsage returns the usage of components with that of one pod more, or of one program.
func addUsage(all []ComponentUsage, component string, measured host.PodUsage) []ComponentUsage {
	index := slices.IndexFunc(all, func(u ComponentUsage) bool { return u.Component == component })
	if index < 0 {
		index = len(all)
		all = append(all, ComponentUsage{Component: component})
	}
	all[index].Pods++
	all[index].Proportional += measured.Proportional
	all[index].Processor += measured.Processor.Seconds()
	return all
}

func largestFirst(all []ComponentUsage) {
	slices.SortFunc(all, func(a, b ComponentUsage) int {
		return cmp.Or(cmp.Compare(b.Proportional, a.Proportional), cmp.Compare(a.Component, b.Component))
	})
}

// componentOf is the workload of a pod: the pod's name without the suffixes that its owners have added.
func componentOf(pod *corev1.Pod) string {
	if pod.Labels["app"] == MachineComponent {
		return MachineComponent
	}
	switch owner := metav1.GetControllerOf(pod); {
	case owner == nil:
		return pod.Name
	case owner.Kind == "ReplicaSet":
		return owner.Name[:max(0, strings.LastIndexByte(owner.Name, '-'))]
	default:
		return owner.Name
	}
}
