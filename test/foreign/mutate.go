package foreign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

const (
	// sidecar is the container with the driver of the machines.
	sidecar = "machine-controller-manager-provider-acme"
	// configVolume is the ConfigMap with the configuration of the cloud provider.
	configVolume, configPath = "cloud-provider-config", "/etc/kubernetes/cloudprovider"
	// tokenWebhook is a file with the address of a webhook for tokens.
	tokenWebhook = "/etc/webhook/config/webhook-kubeconfig.yaml"
)

// mutateDeployment changes what it finds where the documents say that it is. What it does not find is an error.
func mutateDeployment(d *appsv1.Deployment) error {
	spec := &d.Spec.Template.Spec
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == d.Name })
	if i < 0 {
		return errors.New("there is no container with its name")
	}
	c := &spec.Containers[i]
	switch d.Name {
	case "kube-apiserver":
		c.Args = ensureFlag(c.Args, "--feature-gates=", "ImageVolume=true")
		c.Args = ensureFlag(c.Args, "--authentication-token-webhook-config-file=", tokenWebhook)
		c.Args = ensureFlag(c.Args, "--authentication-token-webhook-cache-ttl=", "10s")
		volume := corev1.Volume{Name: "token-webhook", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token-webhook", Optional: new(true)}}}
		spec.Volumes = ensure(spec.Volumes, volume, func(v corev1.Volume) string { return v.Name })
		mount := corev1.VolumeMount{Name: "token-webhook", MountPath: "/etc/webhook/config", ReadOnly: true}
		c.VolumeMounts = ensure(c.VolumeMounts, mount, func(m corev1.VolumeMount) string { return m.Name })
		d.Spec.Template.Labels["networking.resources.gardener.cloud/to-acme-webhook-tcp-8443"] = "allowed"
	case "kube-controller-manager":
		c.Command = ensureFlag(c.Command, "--cloud-provider=", "external")
		c.Command = ensureFlag(c.Command, "--allocate-node-cidrs=", "false")
		c.Command = ensureFlag(c.Command, "--configure-cloud-routes=", "false")
		c.Command = slices.DeleteFunc(c.Command, func(f string) bool { return strings.HasPrefix(f, "--profiling=") })
		volume := corev1.Volume{Name: configVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: configVolume},
		}}}
		spec.Volumes = ensure(spec.Volumes, volume, func(v corev1.Volume) string { return v.Name })
		mount := corev1.VolumeMount{Name: configVolume, MountPath: configPath, ReadOnly: true}
		c.VolumeMounts = ensure(c.VolumeMounts, mount, func(m corev1.VolumeMount) string { return m.Name })
		d.Spec.Template.Labels["networking.gardener.cloud/to-public-networks"] = "allowed"
	case "kube-scheduler", "cluster-autoscaler":
		c.Command = ensureFlag(c.Command, "--feature-gates=", "ImageVolume=true")
	case "machine-controller-manager":
		return addSidecar(d.Namespace, spec, c)
	}
	return nil
}

// addSidecar adds the container with the driver of the machines. It shares the kubeconfig of the shoot.
func addSidecar(namespace string, spec *corev1.PodSpec, generic *corev1.Container) error {
	i := slices.IndexFunc(generic.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "kubeconfig" })
	if i < 0 || !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "kubeconfig" }) {
		return errors.New("there is no volume kubeconfig")
	}
	container := corev1.Container{
		Name: sidecar, Image: "registry.example.com/machine-controller-manager-provider-acme:v1", ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{
			"--control-kubeconfig=inClusterConfig", "--namespace=" + namespace, "--port=10259",
			"--target-kubeconfig=" + generic.VolumeMounts[i].MountPath + "/kubeconfig", "--v=3",
		},
		Ports:        []corev1.ContainerPort{{Name: "providermetrics", ContainerPort: 10259, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: generic.VolumeMounts[i].MountPath, ReadOnly: true}},
	}
	spec.Containers = ensure(spec.Containers, container, func(c corev1.Container) string { return c.Name })
	return nil
}

// mutateAutoscaler lets the sidecar be scaled.
func mutateAutoscaler(object *unstructured.Unstructured) error {
	if object.GetName() != "machine-controller-manager-vpa" {
		return nil
	}
	policies, found, err := unstructured.NestedSlice(object.Object, "spec", "resourcePolicy", "containerPolicies")
	if err != nil {
		return err
	}
	if !found {
		return errors.New("there are no policies of containers")
	}
	policy := map[string]any{"containerName": sidecar, "controlledValues": "RequestsOnly"}
	policies = ensure(policies, any(policy), func(p any) string {
		name, _, _ := unstructured.NestedString(p.(map[string]any), "containerName") //nolint:forcetypeassert // a list of objects
		return name
	})
	return unstructured.SetNestedSlice(object.Object, policies, "spec", "resourcePolicy", "containerPolicies")
}

// ensureFlag sets the value of the entry with a prefix, or adds one at the end.
func ensureFlag(list []string, prefix, value string) []string {
	if i := slices.IndexFunc(list, func(entry string) bool { return strings.HasPrefix(entry, prefix) }); i >= 0 {
		list[i] = prefix + value
		return list
	}
	return append(list, prefix+value)
}

// ensure replaces the element with a name, or adds it at the end.
func ensure[T any](list []T, element T, name func(T) string) []T {
	if i := slices.IndexFunc(list, func(other T) bool { return name(other) == name(element) }); i >= 0 {
		list[i] = element
		return list
	}
	return append(list, element)
}

// operatingSystemConfig is what it knows of an OperatingSystemConfig. All else is in fields whose content it passes on.
type operatingSystemConfig struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       struct {
		Type           string          `json:"type"`
		Class          *string         `json:"class,omitempty"`
		ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
		CRIConfig      json.RawMessage `json:"criConfig,omitempty"`
		InPlaceUpdates json.RawMessage `json:"inPlaceUpdates,omitempty"`
		Purpose        string          `json:"purpose"`
		Units          []systemdUnit   `json:"units,omitempty"`
		Files          []file          `json:"files,omitempty"`
	} `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

type systemdUnit struct {
	Name      string          `json:"name"`
	Command   *string         `json:"command,omitempty"`
	Enable    *bool           `json:"enable,omitempty"`
	Content   *string         `json:"content,omitempty"`
	DropIns   json.RawMessage `json:"dropIns,omitempty"`
	FilePaths []string        `json:"filePaths,omitempty"`
}

type file struct {
	Path        string  `json:"path"`
	Permissions *uint32 `json:"permissions,omitempty"`
	Content     struct {
		SecretRef       json.RawMessage `json:"secretRef,omitempty"`
		ImageRef        json.RawMessage `json:"imageRef,omitempty"`
		Inline          *inline         `json:"inline,omitempty"`
		TransmitUnencod *bool           `json:"transmitUnencoded,omitempty"`
	} `json:"content"`
	HostName *string `json:"hostName,omitempty"`
}

type inline struct {
	Encoding string `json:"encoding"`
	Data     string `json:"data"`
}

// mutate changes the kubelet, the kernel, and adds a unit with a file. What it does not find is an error.
func (c *operatingSystemConfig) mutate() error {
	if c.Spec.Purpose != "reconcile" {
		return nil
	}
	kubelet := slices.IndexFunc(c.Spec.Units, func(u systemdUnit) bool { return u.Name == "kubelet.service" })
	if kubelet < 0 || c.Spec.Units[kubelet].Content == nil {
		return errors.New("there is no unit of the kubelet")
	}
	content, err := kubeletUnit(*c.Spec.Units[kubelet].Content)
	if err != nil {
		return fmt.Errorf("kubelet.service: %w", err)
	}
	c.Spec.Units[kubelet].Content = &content
	for path, change := range map[string]func([]byte) ([]byte, error){
		"/var/lib/kubelet/config/kubelet":   kubeletConfiguration,
		"/etc/sysctl.d/99-k8s-general.conf": kernelSettings,
	} {
		i := slices.IndexFunc(c.Spec.Files, func(f file) bool { return f.Path == path })
		if i < 0 || c.Spec.Files[i].Content.Inline == nil {
			return fmt.Errorf("there is no file %s", path)
		}
		if err := c.Spec.Files[i].Content.Inline.edit(change); err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
	}
	config := file{Path: "/var/lib/kubelet/cloudprovider.conf", Permissions: new(uint32(0o644))}
	config.Content.Inline = &inline{Encoding: "b64", Data: base64.StdEncoding.EncodeToString([]byte("region = acme-1\n"))}
	c.Spec.Files = ensure(c.Spec.Files, config, func(f file) string { return f.Path })
	c.Spec.Units = ensure(c.Spec.Units, systemdUnit{
		Name: "acme-metadata.service", Command: new("start"), Enable: new(true), FilePaths: []string{config.Path},
		Content: new("[Unit]\nBefore=kubelet.service\n[Service]\nType=oneshot\nExecStart=/usr/bin/acme-metadata\n"),
	}, func(u systemdUnit) string { return u.Name })
	return nil
}

// edit changes the content, in its encoding.
func (i *inline) edit(change func([]byte) ([]byte, error)) error {
	data := []byte(i.Data)
	if i.Encoding == "b64" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(i.Data); err != nil {
			return err
		}
	}
	data, err := change(data)
	if err != nil {
		return err
	}
	i.Data = string(data)
	if i.Encoding == "b64" {
		i.Data = base64.StdEncoding.EncodeToString(data)
	}
	return nil
}

// words separates a command line, which may be continued on further lines.
var words = regexp.MustCompile(`\s*\\\n\s*|\s+`)

// kubeletUnit adds a flag to the command of the kubelet, which is one option of its section.
func kubeletUnit(content string) (string, error) {
	options, err := unit.DeserializeOptions(strings.NewReader(content))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(options, func(o *unit.UnitOption) bool { return o.Section == "Service" && o.Name == "ExecStart" })
	if i < 0 {
		return "", errors.New("there is no ExecStart")
	}
	command := words.Split(options[i].Value, -1)
	if command[0] != "/opt/bin/kubelet" {
		return "", fmt.Errorf("the command is %q", command[0])
	}
	command = ensureFlag(command, "--cloud-provider=", "external")
	options[i].Value = strings.Join(command, " \\\n    ")
	out, err := io.ReadAll(unit.Serialize(options))
	return string(out), err
}

// kubeletConfiguration changes the configuration of the kubelet as its type.
func kubeletConfiguration(data []byte) ([]byte, error) {
	config := &kubeletconfigv1beta1.KubeletConfiguration{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, err
	}
	if config.Kind != "KubeletConfiguration" || config.ClusterDomain == "" {
		return nil, fmt.Errorf("it is a %q for domain %q", config.Kind, config.ClusterDomain)
	}
	config.EnableControllerAttachDetach = new(true)
	if config.FeatureGates == nil {
		config.FeatureGates = map[string]bool{}
	}
	config.FeatureGates["ImageVolume"] = true
	return yaml.Marshal(config)
}

// kernelSettings adds a setting.
func kernelSettings(data []byte) ([]byte, error) {
	const setting = "net.ipv4.neigh.default.gc_thresh1 = 0"
	if !strings.Contains(string(data), "=") {
		return nil, errors.New("there are no settings")
	}
	if strings.Contains(string(data), setting) {
		return data, nil
	}
	return []byte(strings.TrimRight(string(data), "\n") + "\n" + setting + "\n"), nil
}
