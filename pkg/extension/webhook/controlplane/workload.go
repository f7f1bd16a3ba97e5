package controlplane

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// autoscalerName is the name of the VerticalPodAutoscaler of the machine-controller-manager.
	autoscalerName = "machine-controller-manager-vpa"
	// providerPort is where the machine controller of a provider serves metrics and probes, and providerPortName its name.
	providerPort, providerPortName = 10259, "providermetrics"
	// kubeconfigVolume is the volume with the kubeconfig of the shoot in pods of the control plane, and kubeconfigPath where containers mount it.
	kubeconfigVolume, kubeconfigPath = "kubeconfig", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
)

// SetFlag returns a list of flags in which one has a value: where it was, or at the end. Flags are --name=value.
func SetFlag(list []string, name, value string) []string {
	list = slices.Clone(list)
	entry := "--" + name + "=" + value
	if i := slices.IndexFunc(list, isFlag(name)); i >= 0 {
		list[i] = entry
		return list
	}
	return append(list, entry)
}

// RemoveFlag returns a list of flags without one.
func RemoveFlag(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), isFlag(name))
}

// Flag returns the value of a flag, empty if it is not in the list.
func Flag(list []string, name string) string {
	if i := slices.IndexFunc(list, isFlag(name)); i >= 0 {
		_, value, _ := strings.Cut(list[i], "=")
		return value
	}
	return ""
}

// AddToFlag returns a list of flags in which one, whose value is a list itself, has an element, such as an admission plugin or a feature gate.
func AddToFlag(list []string, name, element string) []string {
	elements := strings.FieldsFunc(Flag(list, name), func(r rune) bool { return r == ',' })
	if slices.Contains(elements, element) {
		return list
	}
	return SetFlag(list, name, strings.Join(append(elements, element), ","))
}

func isFlag(name string) func(string) bool {
	return func(entry string) bool { return entry == "--"+name || strings.HasPrefix(entry, "--"+name+"=") }
}

// Container returns a container of a pod, nil if there is none of this name.
func Container(spec *corev1.PodSpec, name string) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	return nil
}

// SetContainer adds a container to a pod, or replaces the one with its name.
func SetContainer(spec *corev1.PodSpec, container corev1.Container) {
	if existing := Container(spec, container.Name); existing != nil {
		*existing = container
		return
	}
	spec.Containers = append(spec.Containers, container)
}

// SetVolume adds a volume to a pod, or replaces the one with its name.
func SetVolume(spec *corev1.PodSpec, volume corev1.Volume) {
	if i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }); i >= 0 {
		spec.Volumes[i] = volume
		return
	}
	spec.Volumes = append(spec.Volumes, volume)
}

// MachineController returns the container with the driver of a provider for the pods of the machine-controller-manager. Its name is
// machine-controller-manager-<name of the extension>. The command is the image's, unless the author sets one.
func MachineController(extensionName, image, namespace string) corev1.Container {
	return corev1.Container{
		Name: MachineControllerName(extensionName), Image: image,
		Args: []string{
			"--control-kubeconfig=inClusterConfig", "--machine-creation-timeout=20m", "--machine-drain-timeout=2h", "--machine-health-timeout=10m",
			"--machine-safety-apiserver-statuscheck-timeout=30s", "--machine-safety-apiserver-statuscheck-period=1m", "--machine-safety-orphan-vms-period=30m",
			"--namespace=" + namespace, fmt.Sprintf("--port=%d", providerPort), "--target-kubeconfig=" + kubeconfigPath + "/kubeconfig",
			"--kube-api-qps=100", "--kube-api-burst=200", "--v=3",
		},
		Ports: []corev1.ContainerPort{{Name: providerPortName, ContainerPort: providerPort, Protocol: corev1.ProtocolTCP}},
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(providerPort), Scheme: corev1.URISchemeHTTP}},
			InitialDelaySeconds: 30, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3, TimeoutSeconds: 5,
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("30Mi"),
		}},
		SecurityContext:          &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		VolumeMounts:             []corev1.VolumeMount{{Name: kubeconfigVolume, MountPath: kubeconfigPath, ReadOnly: true}},
		TerminationMessagePolicy: corev1.TerminationMessageReadFile, TerminationMessagePath: corev1.TerminationMessagePathDefault, ImagePullPolicy: corev1.PullIfNotPresent,
	}
}

// MachineControllerName returns the name of that container.
func MachineControllerName(extensionName string) string {
	return "machine-controller-manager-" + extensionName
}

// SetPolicy adds the policy for a container to a VerticalPodAutoscaler, before the one for all others, or replaces it: its requests are scaled, and are
// never below those that it has.
func SetPolicy(vpa *unstructured.Unstructured, container corev1.Container) error {
	path := []string{"spec", "resourcePolicy", "containerPolicies"}
	policies, _, err := unstructured.NestedSlice(vpa.Object, path...)
	if err != nil {
		return fmt.Errorf("VerticalPodAutoscaler %q: %w", vpa.GetName(), err)
	}
	minimum := map[string]any{}
	for name, quantity := range container.Resources.Requests {
		minimum[string(name)] = quantity.String()
	}
	policies = slices.DeleteFunc(policies, func(policy any) bool { return containerOf(policy) == container.Name })
	at := slices.IndexFunc(policies, func(policy any) bool { return containerOf(policy) == "*" })
	if at < 0 {
		at = len(policies)
	}
	policies = slices.Insert(policies, at, any(map[string]any{
		"containerName": container.Name, "controlledValues": "RequestsOnly", "minAllowed": minimum,
	}))
	return unstructured.SetNestedSlice(vpa.Object, policies, path...)
}

func containerOf(policy any) string {
	content, _ := policy.(map[string]any)
	name, _ := content["containerName"].(string)
	return name
}
