// Package gardenerprocess renders the Deployment of a process of Gardener: the common image, a configuration file, probes.
package gardenerprocess

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/internal/component/workload"
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
	// Args are the flags.
	Args []string
	// Ports are its named ports.
	Ports []corev1.ContainerPort
	// Ready and Live are the readiness and liveness probe.
	Ready, Live *corev1.Probe
	// Resources are its requests and limits.
	Resources corev1.ResourceRequirements
	// Env are its environment variables.
	Env []corev1.EnvVar
	// Files are volumes and their mount paths. They are mounted read only.
	Files []File
	// PodLabels and PodAnnotations are additional ones of the pods. Checksums of mounted ConfigMaps and Secrets belong here.
	PodLabels, PodAnnotations map[string]string
}

// File is a volume and its mount path.
type File struct {
	Volume corev1.Volume
	Path   string
}

// Workload returns the workload, for the objects that its component adds.
func (v Values) Workload() workload.Workload {
	container := corev1.Container{
		Image: v.Image, Args: append([]string{v.Name}, v.Args...), Ports: v.Ports,
		ReadinessProbe: v.Ready, LivenessProbe: v.Live, Resources: v.Resources,
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
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: file.Volume.Name, MountPath: file.Path, ReadOnly: true})
	}
	w.Container = container
	return w
}

// Objects renders the process: service account, configuration, Deployment and, if there are several pods, a
// PodDisruptionBudget.
func (v Values) Objects() ([]client.Object, error) {
	var config *corev1.ConfigMap
	if v.Config != nil {
		raw, err := yaml.Marshal(v.Config)
		if err != nil {
			return nil, fmt.Errorf("encode the configuration of %s: %w", v.Name, err)
		}
		config = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, Labels: v.Workload().Labels}, Data: map[string]string{configFile: string(raw)},
		}
		v.Args = append([]string{"--config=" + configDir + "/" + configFile}, v.Args...)
		v.Files = append(v.Files, File{workload.ConfigMapVolume("configuration", v.Name), configDir})
		v.PodAnnotations = workload.Merge(v.PodAnnotations, map[string]string{configChecksum: Checksum(string(raw))})
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
	objects := []client.Object{w.ServiceAccount()}
	if config != nil {
		objects = append(objects, config)
	}
	objects = append(objects, deployment)
	if v.Replicas > 1 {
		objects = append(objects, &policyv1.PodDisruptionBudget{
			ObjectMeta: deployment.ObjectMeta,
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt(1)), Selector: deployment.Spec.Selector},
		})
	}
	return objects, nil
}

// Checksum returns a checksum of contents, for annotations.
func Checksum(contents ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(contents, "\x00")))
	return hex.EncodeToString(sum[:8])
}
