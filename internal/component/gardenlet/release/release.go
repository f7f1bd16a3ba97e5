// Package release renders the chart of a gardenlet as its Gardenlet says, for gardener-operator, which deploys a gardenlet the first time, and for the
// gardenlet, which then updates itself. Both get the same objects, so that neither undoes what the other has done.
package release

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/helm"
)

const (
	// FieldOwner applies the objects of the chart, for gardener-operator and for gardenlets: what a later chart leaves out is removed then, whoever has
	// applied the former one.
	FieldOwner = "gardener-operator"
	// AnnotationChart is on the Deployment of a gardenlet, with a checksum of the chart that it was deployed with.
	AnnotationChart = "seedmanagement.gardener.cloud/gardenlet-chart"
	// virtualPrefix begins the names of the objects of the virtual garden's control plane.
	virtualPrefix = "virtual-garden-"
)

// Values are what a gardenlet is deployed with, besides its Gardenlet.
type Values struct {
	// Image is for a Gardenlet that does not name one. Empty for the image of the chart.
	Image string
	// ImageVectorOverwrite and ComponentImageVectorOverwrites are files, as text, for a Gardenlet that does not have its own; an empty one is one. Empty for
	// none.
	ImageVectorOverwrite, ComponentImageVectorOverwrites string
	// HostsGarden says that the cluster is the runtime cluster of the garden: NetworkPolicies must let the gardenlet reach the garden in it.
	HostsGarden bool
}

// Objects renders the chart in an archive for a cluster.
func Objects(archive []byte, kubernetes version.Info, values map[string]any) ([]client.Object, error) {
	rendered, err := helm.Render(archive, helm.Release{
		Name: gardenlet.Name, Namespace: constants.GardenNamespace, Kubernetes: kubernetes, Values: values,
	})
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(rendered))
	for _, object := range rendered {
		if object.GetKind() == "Deployment" && object.GetName() == gardenlet.Name {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[AnnotationChart] = workload.Checksum(string(archive))
			object.SetAnnotations(annotations)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Connection says how a gardenlet reaches the garden.
type Connection struct {
	// Address is that of the garden.
	Address string
	// Kubeconfig and Bootstrap are the Secrets with the kubeconfig of the gardenlet, and with that of its first start.
	Kubeconfig, Bootstrap corev1.SecretReference
}

// Configuration is the configuration of a gardenlet, as in its Gardenlet: the gardenlet that it is for may know other fields than this operator.
type Configuration map[string]any

// ReadConfiguration returns the configuration of a gardenlet, with the name of its Seed and the namespace that it runs in.
func ReadConfiguration(object *seedmanagementv1alpha1.Gardenlet) (Configuration, error) {
	config := Configuration{}
	if raw := object.Spec.Config; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &config); err != nil {
			return nil, fmt.Errorf("spec.config: %w", err)
		}
	}
	if _, found, err := unstructured.NestedMap(config, "seedConfig"); err != nil || !found {
		return nil, fmt.Errorf("spec.config.seedConfig has to be set")
	}
	for _, field := range []struct {
		value string
		path  []string
	}{
		{object.Name, []string{"seedConfig", "metadata", "name"}},
		{constants.GardenNamespace, []string{"leaderElection", "resourceNamespace"}},
	} {
		if err := config.Set(field.value, field.path...); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// Set sets a field. Objects around it that are null are created.
func (c Configuration) Set(value any, path ...string) error {
	for i := 1; i < len(path); i++ {
		if field, found, _ := unstructured.NestedFieldNoCopy(c, path[:i]...); found && field == nil {
			unstructured.RemoveNestedField(c, path[:i]...)
		}
	}
	if err := unstructured.SetNestedField(c, value, path...); err != nil {
		return fmt.Errorf("spec.config: %w", err)
	}
	return nil
}

// text returns a field, or a default if it is empty.
func (c Configuration) text(fallback string, path ...string) string {
	if value, _, err := unstructured.NestedString(c, path...); err == nil && value != "" {
		return value
	}
	return fallback
}

// Connect sets how the gardenlet reaches the garden, unless the configuration says so, and returns it. Without an address, the one in its kubeconfig
// counts.
func (c Configuration) Connect(address string) (Connection, error) {
	const section = "gardenClientConnection"
	out := Connection{
		Address: c.text(address, section, "gardenClusterAddress"),
		Kubeconfig: corev1.SecretReference{
			Name:      c.text(gardenlet.KubeconfigSecret, section, "kubeconfigSecret", "name"),
			Namespace: c.text(constants.GardenNamespace, section, "kubeconfigSecret", "namespace"),
		},
		Bootstrap: corev1.SecretReference{
			Name:      c.text(gardenlet.BootstrapSecret, section, "bootstrapKubeconfig", "name"),
			Namespace: c.text(constants.GardenNamespace, section, "bootstrapKubeconfig", "namespace"),
		},
	}
	for _, field := range []struct {
		value string
		path  []string
	}{
		{out.Address, []string{"gardenClusterAddress"}},
		{out.Kubeconfig.Name, []string{"kubeconfigSecret", "name"}},
		{out.Kubeconfig.Namespace, []string{"kubeconfigSecret", "namespace"}},
		{out.Bootstrap.Name, []string{"bootstrapKubeconfig", "name"}},
		{out.Bootstrap.Namespace, []string{"bootstrapKubeconfig", "namespace"}},
	} {
		if field.value == "" {
			continue
		}
		if err := c.Set(field.value, append([]string{section}, field.path...)...); err != nil {
			return Connection{}, err
		}
	}
	if err := out.validate(); err != nil {
		return Connection{}, err
	}
	return out, nil
}

// validate checks the Secrets, which the operator writes or deletes: they are those of a gardenlet, and two.
func (c Connection) validate() error {
	const section = "spec.config.gardenClientConnection."
	for _, secret := range []struct {
		field string
		ref   corev1.SecretReference
	}{{"kubeconfigSecret", c.Kubeconfig}, {"bootstrapKubeconfig", c.Bootstrap}} {
		switch {
		case secret.ref.Namespace != constants.GardenNamespace:
			return fmt.Errorf("%s%s.namespace: must be %q", section, secret.field, constants.GardenNamespace)
		case !strings.HasPrefix(secret.ref.Name, gardenlet.Name+"-"):
			return fmt.Errorf("%s%s.name: must begin with %q", section, secret.field, gardenlet.Name+"-")
		}
	}
	if c.Kubeconfig == c.Bootstrap {
		return fmt.Errorf("%sbootstrapKubeconfig.name: must not be that of kubeconfigSecret", section)
	}
	return nil
}

// Lease returns the name of the Lease of the leader election. It is empty without one.
func (c Configuration) Lease() string {
	if elects, found, err := unstructured.NestedBool(c, "leaderElection", "leaderElect"); err == nil && found && !elects {
		return ""
	}
	return c.text(gardenlet.LeaseName, "leaderElection", "resourceName")
}

// Chart returns the values of the chart of a gardenlet.
func (v Values) Chart(object *seedmanagementv1alpha1.Gardenlet, config Configuration) (map[string]any, error) {
	raw, err := json.Marshal(object.Spec.Deployment)
	if err != nil {
		return nil, fmt.Errorf("encode spec.deployment: %w", err)
	}
	values := map[string]any{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("decode spec.deployment: %w", err)
	}
	// These are no values of the chart, or have other names there.
	for _, field := range []string{"helm", "imageVectorOverwrite", "componentImageVectorOverwrite"} {
		delete(values, field)
	}
	for name, text := range map[string]string{
		"imageVectorOverwrite":           ptr.Deref(object.Spec.Deployment.ImageVectorOverwrite, v.ImageVectorOverwrite),
		"componentImageVectorOverwrites": ptr.Deref(object.Spec.Deployment.ComponentImageVectorOverwrite, v.ComponentImageVectorOverwrites),
	} {
		if text != "" {
			values[name] = strings.TrimRight(text, "\n") + "\n" // as it is read from the ConfigMap again
		}
	}
	if image := object.Spec.Deployment.Image; v.Image != "" && (image == nil || image.Ref == nil && image.Repository == nil && image.Tag == nil) {
		if err := unstructured.SetNestedField(values, v.Image, "image", "ref"); err != nil {
			return nil, err
		}
	}
	if v.HostsGarden {
		label := workload.PolicyLabel(virtualPrefix+kubeapiserver.Name, kubeapiserver.Port)
		if err := unstructured.SetNestedField(values, constants.NetworkPolicyAllowed, "podLabels", label); err != nil {
			return nil, err
		}
	}
	values["config"] = map[string]any(config)
	return values, nil
}
