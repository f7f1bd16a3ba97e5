// Package controlplane renders what kube-controller-manager and kube-scheduler have in common: a token for the kube-apiserver of the shoot, one
// Deployment whose pods elect a leader, and metrics over TLS.
package controlplane

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// clusterDir is where Secrets are mounted that are about the cluster.
	clusterDir = "/srv/kubernetes/"
	// OwnDir is where Secrets and ConfigMaps are mounted that are about a process, under names that begin with that of the process.
	OwnDir = "/var/lib/"
)

// Process is one of these components.
type Process struct {
	// Of is the kind of cluster that it is for.
	Of instance.Kind
	// Name is its name, and that of its ServiceAccount in the cluster. Its objects have the name that Of makes of it.
	Name, Namespace string
	// Labels select the pods.
	Labels map[string]string
	// Image and Command are those of the container, and Flags those of the command, without dashes. They are in the command of the container, not in
	// its arguments, as webhooks of extensions change them there.
	Image, Command string
	Flags          map[string]string
	// Replicas is the number of pods, and Spread are the topology keys over which they are spread if possible.
	Replicas int32
	Spread   []string
	// PriorityClass is that of the pods in the control plane of a shoot. Of says what corresponds to it.
	PriorityClass string
	// Port is the port of metrics and health.
	Port int32
	// GenericKubeconfig is the Secret with the generic token kubeconfig.
	GenericKubeconfig string
	// CPU and Memory are the requests, unless MinAllowed has them.
	CPU, Memory string
	MinAllowed  corev1.ResourceList
	// PodLabels are additional labels of the pods, for network policies.
	PodLabels map[string]string

	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
}

// Secret mounts a Secret in the directory for Secrets of clusters, and returns the directory it is in. Webhooks of extensions know the names of
// volumes, and where they are mounted.
func (p *Process) Secret(name, secret string) string {
	return p.SecretIn(clusterDir, name, name, secret)
}

// SecretIn mounts a Secret in another directory, under a name, and returns the directory it is in.
func (p *Process) SecretIn(dir, as, name, secret string) string {
	return p.mount(workload.SecretVolume(name, secret), dir+as)
}

// ConfigMapIn mounts a ConfigMap in a directory, under a name, and returns the directory it is in.
func (p *Process) ConfigMapIn(dir, as, name, configMap string) string {
	return p.mount(workload.ConfigMapVolume(name, configMap), dir+as)
}

func (p *Process) mount(volume corev1.Volume, path string) string {
	p.volumes = append(p.volumes, volume)
	p.mounts = append(p.mounts, corev1.VolumeMount{Name: volume.Name, MountPath: path, ReadOnly: true})
	return path + "/"
}

// Objects renders the request for the token, the Service, the Deployment and a PodDisruptionBudget.
func (p *Process) Objects() ([]client.Object, error) {
	live := workload.HTTPProbe("/healthz", int(p.Port), corev1.URISchemeHTTPS)
	live.TimeoutSeconds = 15
	resources := workload.Requests(p.CPU, p.Memory)
	maps.Copy(resources.Requests, p.MinAllowed)
	labels := workload.Merge(p.Labels, map[string]string{constants.GardenRole: constants.GardenRoleControlPlane})
	w := workload.Workload{
		Name: p.Of.Name(p.Name), Namespace: p.Namespace, Labels: p.Labels, Replicas: p.Replicas, PriorityClass: p.Of.PriorityClass(p.PriorityClass),
		PodLabels: workload.Merge(labels, map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, kubeapiserver.PolicyLabel(p.Of): constants.NetworkPolicyAllowed,
		}, p.PodLabels),
		Container: corev1.Container{
			Image: p.Image, Command: slices.Concat([]string{p.Command}, args(p.Flags)),
			Ports:         []corev1.ContainerPort{{Name: "metrics", ContainerPort: p.Port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: live, StartupProbe: workload.Eager(live), Resources: resources, VolumeMounts: append(slices.Clone(p.mounts), shootaccess.Mount()),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		},
		Volumes: append(slices.Clone(p.volumes), shootaccess.Volume(p.GenericKubeconfig, p.Name)),
	}
	deployment := w.Deployment()
	deployment.Labels = workload.Mutable(labels)
	workload.HighAvailability(deployment, resourcesv1alpha1.HighAvailabilityConfigTypeController, p.Replicas)
	pod := &deployment.Spec.Template.Spec
	pod.ServiceAccountName = "" // it does not use the API of the seed
	pod.AutomountServiceAccountToken = new(false)
	pod.EnableServiceLinks = new(false)
	for _, key := range p.Spread {
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector.DeepCopy(),
		})
	}
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	service := w.Service("metrics", p.Port)
	service.Labels = labels
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(p.Port) // a number, as the labels for network policies contain it
	service.Annotations = workload.Scraped(p.Port)
	return []client.Object{
		shootaccess.Secret(p.Namespace, p.Name), service, deployment,
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Of.Name(p.Name), Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
	}, nil
}

func args(flags map[string]string) []string {
	var out []string
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		out = append(out, "--"+flag+"="+flags[flag])
	}
	return out
}
