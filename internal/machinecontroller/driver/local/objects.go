package local

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/pkg/containerd"
)

// Labels of the pods.
const (
	// LabelMachine is the name of the Machine.
	LabelMachine = "machine"
	// LabelClass is the name of the MachineClass.
	LabelClass = "machine-class"
)

const (
	userDataKey = "userdata"
	volumeName  = "machine"
)

// decode reads the providerSpec of a class. The error has all invalid fields.
func decode(class *machinev1alpha1.MachineClass) (*localv1alpha1.MachineProviderSpec, error) {
	spec := &localv1alpha1.MachineProviderSpec{}
	decoder := json.NewDecoder(bytes.NewReader(class.ProviderSpec.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		return nil, driver.Errorf(driver.InvalidArgument, "MachineClass %s: decode providerSpec: %w", class.Name, err)
	}
	if err := validate(spec).ToAggregate(); err != nil {
		return nil, driver.Errorf(driver.InvalidArgument, "MachineClass %s: %w", class.Name, err)
	}
	return spec, nil
}

// namespaceOf returns the namespace of the machines of a class. The driver also deletes machines of a class that is not valid any more.
func namespaceOf(class *machinev1alpha1.MachineClass) string {
	spec := &localv1alpha1.MachineProviderSpec{}
	if err := json.Unmarshal(class.ProviderSpec.Raw, spec); err != nil || spec.Namespace == "" {
		return class.Namespace
	}
	return spec.Namespace
}

func validate(spec *localv1alpha1.MachineProviderSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("providerSpec")
	for _, problem := range validation.IsDNS1123Label(spec.Namespace) {
		if spec.Namespace != "" {
			errs = append(errs, field.Invalid(path.Child("namespace"), spec.Namespace, problem))
		}
	}
	for _, problem := range validation.IsValidLabelValue(spec.Zone) {
		errs = append(errs, field.Invalid(path.Child("zone"), spec.Zone, problem))
	}
	if spec.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), "name the machine image"))
	}
	seen := map[string]bool{}
	for i, registry := range spec.Registries {
		path := path.Child("registries").Index(i)
		if seen[registry.Host] {
			errs = append(errs, field.Duplicate(path.Child("host"), registry.Host))
		}
		seen[registry.Host] = true
		// It becomes the name of a directory.
		if host, port, found := strings.Cut(registry.Host, ":"); len(validation.IsDNS1123Subdomain(host)) > 0 || found && !isPort(port) {
			errs = append(errs, field.Invalid(path.Child("host"), registry.Host, "must be a host name, or one with a port"))
		}
		if registry.Server != "" && !isURL(registry.Server) {
			errs = append(errs, field.Invalid(path.Child("server"), registry.Server, "must be a URL with http or https"))
		}
		for j, mirror := range registry.Mirrors {
			if !isURL(mirror) {
				errs = append(errs, field.Invalid(path.Child("mirrors").Index(j), mirror, "must be a URL with http or https"))
			}
		}
	}
	return errs
}

func isPort(s string) bool {
	number, err := strconv.ParseUint(s, 10, 16)
	return err == nil && number > 0
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && !strings.ContainsAny(s, "\"\\\n")
}

// hostsFile renders the hosts.toml of a registry.
func hostsFile(registry localv1alpha1.MachineRegistry) []byte {
	config := extensionsv1alpha1.RegistryConfig{Server: new(cmp.Or(registry.Server, "https://"+registry.Host))}
	for _, mirror := range registry.Mirrors {
		u, err := url.Parse(mirror)
		config.Hosts = append(config.Hosts, extensionsv1alpha1.RegistryHost{
			URL: mirror, OverridePath: new(err == nil && strings.Trim(u.Path, "/") != ""),
		})
	}
	return containerd.HostsFile(config)
}

func secretName(machine string) string { return "machine-" + machine }

// objects renders the Secret and the Pod of a machine. They have no owner, as the Machine is in another namespace.
func objects(request driver.Request, spec *localv1alpha1.MachineProviderSpec, namespace string) (*corev1.Secret, *corev1.Pod) {
	machine := request.Machine
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: labelsOf(map[string]string{LabelMachine: kube.LabelValue(machine.Name), LabelClass: kube.LabelValue(request.Class.Name)}),
		}
	}
	secret := &corev1.Secret{ObjectMeta: meta(secretName(machine.Name)), Data: map[string][]byte{userDataKey: request.UserData}}
	mounts := []corev1.VolumeMount{{Name: volumeName, MountPath: "/etc/machine/" + userDataKey, SubPath: userDataKey, ReadOnly: true}}
	for i, registry := range spec.Registries {
		key := fmt.Sprintf("hosts-%d.toml", i)
		secret.Data[key] = hostsFile(registry)
		mounts = append(mounts, corev1.VolumeMount{
			Name: volumeName, MountPath: containerd.HostsPath(registry.Host), SubPath: key, ReadOnly: true,
		})
	}
	volumes := []corev1.Volume{{Name: volumeName, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret.Name, DefaultMode: new(int32(0o500)),
	}}}}
	// Overlay file systems do not stack, so containers are on the disk of the seed's node. The machine's init itself mounts /run and /tmp in
	// memory.
	for _, dir := range []string{"containerd", "kubelet"} {
		volumes = append(volumes, corev1.Volume{Name: dir, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		mounts = append(mounts, corev1.VolumeMount{Name: dir, MountPath: "/var/lib/" + dir})
	}
	pod := &corev1.Pod{ObjectMeta: meta(machine.Name), Spec: corev1.PodSpec{
		Hostname: hostname(machine.Name),
		// The disk of a machine is lost with its container.
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(powerOffSeconds)),
		// Machines must not have access to the seed.
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		Containers: []corev1.Container{{
			Name: "machine", Image: spec.Image,
			Env:             []corev1.EnvVar{{Name: "MACHINE_NAME", Value: machine.Name}},
			SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			Resources:       resources(request.Class),
			VolumeMounts:    mounts,
		}},
		Volumes: volumes,
	}}
	if spec.Zone != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: spec.Zone}
	}
	pod.Labels[constants.NetworkPolicyToDNS] = constants.NetworkPolicyAllowed
	pod.Labels[constants.NetworkPolicyToPublicNetworks] = constants.NetworkPolicyAllowed
	pod.Labels[constants.NetworkPolicyToPrivateNetworks] = constants.NetworkPolicyAllowed
	return secret, pod
}

// hostname is the name with which the kubelet registers its Node.
func hostname(machine string) string {
	if len(machine) > validation.DNS1123LabelMaxLength {
		return ""
	}
	return machine
}

// resources has small requests, as local machines are mostly idle, and the capacity of the machine type as limits.
func resources(class *machinev1alpha1.MachineClass) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
	}}
	if class.NodeTemplate == nil {
		return out
	}
	for name, request := range out.Requests {
		limit, ok := class.NodeTemplate.Capacity[name]
		if !ok || limit.IsZero() {
			continue
		}
		if out.Limits == nil {
			out.Limits = corev1.ResourceList{}
		}
		out.Limits[name] = limit
		if request.Cmp(limit) > 0 {
			out.Requests[name] = limit
		}
	}
	return out
}
