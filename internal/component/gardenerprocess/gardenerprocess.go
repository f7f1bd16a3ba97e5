// Package gardenerprocess renders the Deployment of a process of Gardener: the common image, a configuration file, probes.
package gardenerprocess

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
)

const (
	configDir  = "/etc/gardener/config"
	configFile = "config.yaml"
	// configChecksum on pods makes them roll when their configuration changes.
	configChecksum = "checksum/configuration"
)

// Values are what a process is deployed with.
type Values struct {
	// Name is the name of the process and of its objects, such as "gardener-scheduler". Role is its label.
	Name, Role string
	// Process is the name of the process if its objects have another one.
	Process string
	// Labels are on the objects and select the pods. The default is the label app with the value gardener, and the role.
	Labels map[string]string
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods.
	Replicas int32
	// PriorityClass is that of the pods.
	PriorityClass string
	// Config is the configuration file. It may be nil.
	Config runtime.Object
	// ConfigFile is the name of the configuration file. The default is config.yaml.
	ConfigFile string
	// Args are the flags.
	Args []string
	// Ports are its named ports.
	Ports []corev1.ContainerPort
	// Ready and Live are the readiness and liveness probe.
	Ready, Live *corev1.Probe
	// TerminationMessage is where the status of a pod has the last error from. Empty for the default of Kubernetes.
	TerminationMessage corev1.TerminationMessagePolicy
	// Resources are its requests and limits.
	Resources corev1.ResourceRequirements
	// Env are its environment variables.
	Env []corev1.EnvVar
	// Files are volumes and their mount paths.
	Files []File
	// PodLabels and PodAnnotations are additional ones of the pods. Checksums of mounted ConfigMaps and Secrets belong here.
	PodLabels, PodAnnotations map[string]string
	// HighAvailability is the type of the Deployment, "server" or "controller", for the webhook that spreads pods. Empty means that it has no label.
	HighAvailability string
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
	// Virtual says that the process works in a virtual garden. Nil means that it works in the cluster that it runs in.
	Virtual *Virtual
}

// Virtual says how the pods of a process, which run beside the control plane of a virtual garden, reach that and are reached by it.
type Virtual struct {
	// GenericKubeconfig is the Secret with the generic token kubeconfig of the virtual garden. The token is that of the process.
	GenericKubeconfig string
	// TrafficDistribution is that of Services. Nil means none.
	TrafficDistribution *string
}

// HighAvailability returns the type of a Deployment for Values, or none if the process does not work in a virtual garden.
func (v *Virtual) HighAvailability(kind string) string {
	if v == nil {
		return ""
	}
	return kind
}

// scrapeTargets is the alias of ports with metrics in the namespace of the garden.
const scrapeTargets = "all-garden-scrape-targets"

// KubeAPIServerPolicyLabel is the label of pods that may connect to the kube-apiserver of a virtual garden.
func KubeAPIServerPolicyLabel() string {
	return workload.PolicyLabel(instance.VirtualGarden.Name("kube-apiserver"), 443)
}

// WebhookTargetsPolicyLabel is the label of pods that may connect to the ports of a Service that Reachable names as called.
func WebhookTargetsPolicyLabel() string { return workload.PolicyTo(workload.WebhookTargets) }

// Target returns the workload as the cluster knows it that the process works in, for bindings. In a virtual garden its ServiceAccount is in
// kube-system, where the token requestor creates it.
func (v Values) Target() workload.Workload {
	w := v.Workload()
	if v.Virtual != nil {
		w.Namespace = metav1.NamespaceSystem
	}
	return w
}

// Reachable changes the Service of a process that works in a virtual garden, so that network policies allow API servers to call some ports of the
// pods, and Prometheus to scrape others. Without a virtual garden the Service stays as it is.
func (v Values) Reachable(service *corev1.Service, called, scraped []int32) *corev1.Service {
	if v.Virtual == nil {
		return service
	}
	if len(called) > 0 {
		service.Annotations = workload.Merge(service.Annotations, workload.FromPods(workload.WebhookTargets, called...))
	}
	if len(scraped) > 0 {
		service.Annotations = workload.Merge(service.Annotations, workload.FromPods(scrapeTargets, scraped...))
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		for _, of := range v.Ports {
			if of.Name == port.TargetPort.StrVal {
				port.TargetPort = intstr.FromInt32(of.ContainerPort) // a number, as the labels for network policies contain it
			}
		}
	}
	service.Spec.TrafficDistribution = v.Virtual.TrafficDistribution
	return service
}

// File is a volume and its mount path. It is mounted read only unless it is writable.
type File struct {
	Volume   corev1.Volume
	Path     string
	Writable bool
}

// Workload returns the workload, for the objects that its component adds.
func (v Values) Workload() workload.Workload {
	container := corev1.Container{
		Image: v.Image, Args: append([]string{cmp.Or(v.Process, v.Name)}, v.Args...), Ports: v.Ports,
		ReadinessProbe: v.Ready, LivenessProbe: v.Live, Resources: v.Resources, TerminationMessagePolicy: v.TerminationMessage,
		Env: append([]corev1.EnvVar{workload.PodName()}, v.Env...),
	}
	if v.Ready != nil {
		container.StartupProbe = workload.Eager(v.Ready)
	}
	w := workload.Workload{
		Name: v.Name, Namespace: v.Namespace, Labels: v.Labels,
		PodLabels: v.PodLabels, PodAnnotations: v.PodAnnotations,
		Replicas: v.Replicas, PriorityClass: v.PriorityClass,
	}
	if w.Labels == nil {
		w.Labels = map[string]string{"app": "gardener", "role": v.Role}
	}
	for _, file := range v.Files {
		w.Volumes = append(w.Volumes, file.Volume)
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: file.Volume.Name, MountPath: file.Path, ReadOnly: !file.Writable})
	}
	w.Container = container
	return w
}

// Objects renders the process: service account, configuration, Deployment and, if there are several pods, a
// PodDisruptionBudget. In place of the service account, a process that works in a virtual garden has the request for its token there.
func (v Values) Objects() ([]client.Object, error) {
	objects := []client.Object{v.Workload().ServiceAccount()}
	if v.Virtual != nil {
		objects = []client.Object{shootaccess.Secret(v.Namespace, v.Name)}
		v.Files = append(slices.Clone(v.Files), File{Volume: shootaccess.Volume(v.Virtual.GenericKubeconfig, v.Name), Path: shootaccess.MountPath})
		v.PodLabels = workload.Merge(map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, KubeAPIServerPolicyLabel(): constants.NetworkPolicyAllowed,
		}, v.PodLabels)
	}
	if v.Config != nil {
		raw, err := yaml.Marshal(v.Config)
		if err != nil {
			return nil, fmt.Errorf("encode the configuration of %s: %w", v.Name, err)
		}
		config := v.configMap(string(raw))
		objects = append(objects, config)
		v.Args = append([]string{"--config=" + configDir + "/" + cmp.Or(v.ConfigFile, configFile)}, v.Args...)
		v.Files = append(v.Files, File{Volume: workload.ConfigMapVolume("configuration", config.Name), Path: configDir})
		if v.Virtual == nil {
			v.PodAnnotations = workload.Merge(v.PodAnnotations, map[string]string{configChecksum: workload.Checksum(string(raw))})
		}
	}
	w := v.Workload()
	deployment := w.Deployment()
	if v.Replicas > 1 {
		deployment.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: deployment.Spec.Selector,
		}}
	}
	// The new pod starts while the old one runs. Processes elect a leader where that is necessary.
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt(1)), MaxUnavailable: new(intstr.FromInt(0))},
	}
	meta := deployment.ObjectMeta
	if v.HighAvailability != "" {
		deployment.Labels = workload.Merge(deployment.Labels, map[string]string{resourcesv1alpha1.HighAvailabilityConfigType: v.HighAvailability})
	}
	if v.Virtual != nil {
		if err := v.inVirtual(deployment); err != nil {
			return nil, err
		}
	}
	objects = append(objects, deployment)
	if v.Replicas > 1 {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: meta,
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt(1)), Selector: deployment.Spec.Selector,
				UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow), // a pod that does not work is not missed, and must not keep its node from being drained
			},
		}
		objects = append(objects, budget)
	}
	if v.Autoscaled {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	return objects, nil
}

// configMap renders the ConfigMap with the configuration. For a process that works in a virtual garden it is immutable.
func (v Values) configMap(config string) *corev1.ConfigMap {
	labels, data := v.Workload().Labels, map[string]string{cmp.Or(v.ConfigFile, configFile): config}
	if v.Virtual == nil {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, Labels: labels}, Data: data}
	}
	object := immutable.ConfigMap(v.Namespace, v.Name+"-config", data)
	object.Labels = workload.Merge(object.Labels, labels)
	return object
}

// inVirtual completes the Deployment of a process that works in a virtual garden.
func (v Values) inVirtual(deployment *appsv1.Deployment) error {
	if v.HighAvailability != "" {
		workload.HighAvailability(deployment, v.HighAvailability, v.Replicas)
	}
	pod := &deployment.Spec.Template.Spec
	pod.ServiceAccountName = "" // it does not use the API of the runtime cluster
	pod.AutomountServiceAccountToken = new(false)
	pod.EnableServiceLinks = new(false)
	return references.Inject(deployment, nil)
}
