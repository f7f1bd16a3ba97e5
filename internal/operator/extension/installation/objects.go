package installation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/operator/extension"
	"gardener.cloud/gardener/pkg/helm"
)

const (
	// classRuntime is the class of ManagedResources for the runtime cluster. Those without a class are for the virtual garden.
	classRuntime = "seed"
	// runtimePriorityClass and admissionPriorityClass are those of the pods of extensions and of their admission controllers.
	runtimePriorityClass   = constants.PriorityClassNameGardenSystem200
	admissionPriorityClass = constants.PriorityClassNameGardenSystem400

	labelOrigin = "origin"
	accessKey   = "allowed"
)

// runtimeNamespace renders the namespace of an extension in the runtime cluster. Its pods are spread over the zones, and may reach API servers of
// control planes.
func runtimeNamespace(e *operatorv1alpha1.Extension, zones []string) *corev1.Namespace {
	labels := map[string]string{
		constants.GardenRole:                             constants.GardenRoleExtension,
		operatorv1alpha1.LabelExtensionName:              e.Name,
		resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
		constants.NetworkPolicyAccessTargetAPIServer:     accessKey,
	}
	if level := e.Annotations[constants.PodSecurityEnforce]; level != "" {
		labels[podsecurityapi.EnforceLevelLabel] = level
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: extension.RuntimeNamespace(e.Name), Labels: labels,
		Annotations: map[string]string{resourcesv1alpha1.HighAvailabilityConfigZones: strings.Join(zones, ",")},
	}}
}

// virtualNamespace renders the namespace of the admission controller's objects in the virtual garden.
func virtualNamespace(e *operatorv1alpha1.Extension) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: extension.VirtualNamespace(e.Name), Labels: map[string]string{
		constants.GardenRole: constants.GardenRoleExtension, operatorv1alpha1.LabelExtensionName: e.Name,
	}}}
}

// accessSecret renders the request for a token of the admission controller for the virtual garden.
func accessSecret(e *operatorv1alpha1.Extension) *corev1.Secret {
	secret := shootaccess.Secret(constants.GardenNamespace, extension.AdmissionServiceAccount(e.Name))
	secret.Labels[operatorv1alpha1.LabelExtensionName] = e.Name
	return secret
}

// runtimeValues are the values that the chart of an extension gets in the runtime cluster. Charts may compare enabled with a string.
func runtimeValues() map[string]any {
	return map[string]any{"runtimeCluster": map[string]any{"enabled": "true", "priorityClassName": runtimePriorityClass}}
}

// admissionVirtualValues are those of the admission controller's objects in the virtual garden.
func admissionVirtualValues(e *operatorv1alpha1.Extension) map[string]any {
	return map[string]any{"virtualCluster": map[string]any{
		"enabled":        true,
		"serviceAccount": map[string]any{"name": extension.AdmissionServiceAccount(e.Name), "namespace": metav1.NamespaceSystem},
	}}
}

// admissionRuntimeValues are those of the admission controller in the runtime cluster.
func admissionRuntimeValues(e *operatorv1alpha1.Extension) map[string]any {
	return map[string]any{
		"runtimeCluster": map[string]any{"priorityClassName": admissionPriorityClass},
		"virtualCluster": map[string]any{"enabled": true, "namespace": extension.VirtualNamespace(e.Name)},
	}
}

// values returns the values of an Extension for a chart, with placeholders replaced, and with those of the operator, which win.
func values(raw *apiextensionsv1.JSON, data *chart.Resources, own map[string]any) (map[string]any, error) {
	values := map[string]any{}
	if raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &values); err != nil {
			return nil, err
		}
	}
	if values == nil { // they were null
		values = map[string]any{}
	}
	if err := data.Expand(values); err != nil {
		return nil, err
	}
	chart.Merge(values, map[string]any{"gardener": own})
	return values, nil
}

// virtualVersion returns the Kubernetes version of the virtual garden in the form in which charts see it.
func virtualVersion(garden *operatorv1alpha1.Garden) (version.Info, error) {
	info, err := helm.KubernetesVersion(garden.Spec.VirtualCluster.Kubernetes.Version)
	if err != nil {
		return info, fmt.Errorf("version of the virtual garden: %w", err)
	}
	return info, nil
}

// injectKubeconfig mounts the generic kubeconfig for the virtual garden, with the token of the admission controller, into all containers.
func injectKubeconfig(spec *corev1.PodSpec, genericKubeconfig string, e *operatorv1alpha1.Extension) {
	volume, mount := shootaccess.Volume(genericKubeconfig, extension.AdmissionServiceAccount(e.Name)), shootaccess.Mount()
	spec.Volumes = append(slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }), volume)
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = append(slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == mount.Name || m.MountPath == mount.MountPath
			}), mount)
		}
	}
}

// copyName is the name of the copy, in the virtual garden, of a Secret or ConfigMap that an Extension refers to.
func copyName(e *operatorv1alpha1.Extension, name string) string { return e.Name + "-" + name }

// original is a Secret or ConfigMap that is copied to the virtual garden, and its role there.
type original struct {
	extension.Reference
	role string
}

// copied returns what a registration refers to. What has several roles has the first one: they say what objects are, and nothing depends on them.
func copied(e *operatorv1alpha1.Extension) []original {
	var originals []original
	add := func(kind, name, role string) {
		ref := extension.Reference{Kind: kind, Name: name}
		if name != "" && !slices.ContainsFunc(originals, func(s original) bool { return s.Reference == ref }) {
			originals = append(originals, original{ref, role})
		}
	}
	if repository := extension.Chart(e); repository != nil {
		if ref := repository.PullSecretRef; ref != nil {
			add("Secret", ref.Name, constants.GardenRoleHelmPullSecret)
		}
		if ref := repository.CABundleSecretRef; ref != nil {
			add("Secret", ref.Name, constants.GardenRoleOCICABundle)
		}
		for _, resource := range extension.Resources(e) {
			add(resource.ResourceRef.Kind, resource.ResourceRef.Name, constants.GardenRoleResourceReference)
		}
	}
	return originals
}

// copyMeta is the metadata of a copy.
func copyMeta(e *operatorv1alpha1.Extension, s original) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: copyName(e, s.Name), Labels: map[string]string{
		constants.GardenRole: s.role, operatorv1alpha1.LabelExtensionName: e.Name,
	}}
}

// registration renders the ControllerRegistration and the ControllerDeployment of an Extension.
func registration(e *operatorv1alpha1.Extension) []client.Object {
	labels := map[string]string{operatorv1alpha1.LabelExtensionName: e.Name}
	r := &corev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: e.Name, Labels: labels},
		Spec:       corev1beta1.ControllerRegistrationSpec{Resources: extension.RegisteredResources(e)},
	}
	if level := e.Annotations[constants.PodSecurityEnforce]; level != "" {
		r.Annotations = map[string]string{constants.PodSecurityEnforce: level}
	}
	repository := extension.Chart(e)
	if repository == nil {
		return []client.Object{r}
	}
	spec := e.Spec.Deployment.Extension
	r.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{
		Policy: spec.Policy, SeedSelector: spec.SeedSelector, DeploymentRefs: []corev1beta1.DeploymentRef{{Name: e.Name}},
	}
	repository = repository.DeepCopy()
	for _, ref := range []*corev1.LocalObjectReference{repository.PullSecretRef, repository.CABundleSecretRef} {
		if ref != nil {
			ref.Name = copyName(e, ref.Name)
		}
	}
	d := &gardencorev1.ControllerDeployment{
		ObjectMeta:             metav1.ObjectMeta{Name: e.Name, Labels: labels},
		Helm:                   &gardencorev1.HelmControllerDeployment{Values: spec.Values, OCIRepository: repository},
		InjectGardenKubeconfig: spec.InjectGardenKubeconfig,
	}
	// This is the default for extensions with machines, as they read from the garden.
	if d.InjectGardenKubeconfig == nil && slices.ContainsFunc(e.Spec.Resources, func(r corev1beta1.ControllerResource) bool { return r.Kind == "Worker" }) {
		d.InjectGardenKubeconfig = new(true)
	}
	for _, resource := range extension.Resources(e) {
		resource.ResourceRef.Name = copyName(e, resource.ResourceRef.Name)
		d.Resources = append(d.Resources, resource)
	}
	return []client.Object{d, r}
}
