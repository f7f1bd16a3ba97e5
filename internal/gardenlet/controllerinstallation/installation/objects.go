package installation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/component/extensionobject"
)

const (
	// class is the class of ManagedResources for the seed itself.
	class = "seed"
	// accessSecret is the Secret with the token of an extension for the garden.
	accessSecret = "garden-access-extension"
	// kubeconfigPrefix is the prefix of the name of the Secret with the kubeconfig that uses the token.
	kubeconfigPrefix = "generic-garden-kubeconfig-"
	// accessVolume is the volume with both, and accessPath where pods mount it.
	accessVolume = "garden-kubeconfig"
	accessPath   = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"

	envKubeconfig = "GARDEN_KUBECONFIG"
	envSeedName   = "SEED_NAME"
)

// namespaceName is the namespace of an extension.
func namespaceName(ci *corev1beta1.ControllerInstallation) string {
	return extensionobject.NamespacePrefix + ci.Name
}

// namespace renders the namespace of an extension. Its pods are spread over the zones of the seed.
func namespace(ci *corev1beta1.ControllerInstallation, zones []string) *corev1.Namespace {
	labels := map[string]string{
		constants.GardenRole:                             constants.GardenRoleExtension,
		constants.ControllerRegistrationName:             ci.Spec.RegistrationRef.Name,
		resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
	}
	if level := ci.Annotations[constants.PodSecurityEnforce]; level != "" {
		labels[podsecurityapi.EnforceLevelLabel] = level
	}
	annotations := map[string]string{resourcesv1alpha1.HighAvailabilityConfigZones: strings.Join(zones, ",")}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(ci), Labels: labels, Annotations: annotations}}
}

// kubeconfig is the kubeconfig of extensions for the garden. Its token is in a file beside it.
func (r *reconciler) kubeconfig() ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["garden"] = &clientcmdapi.Cluster{Server: r.GardenConfig.Host, CertificateAuthorityData: r.GardenConfig.CAData}
	config.AuthInfos["extension"] = &clientcmdapi.AuthInfo{TokenFile: accessPath + "/token"}
	config.Contexts["garden"] = &clientcmdapi.Context{Cluster: "garden", AuthInfo: "extension"}
	config.CurrentContext = "garden"
	return clientcmd.Write(*config)
}

// kubeconfigName changes with the content, so that pods roll when the garden gets another address or CA.
func (r *reconciler) kubeconfigName() string {
	sum := sha256.Sum256(slices.Concat([]byte(r.GardenConfig.Host), []byte{0}, r.GardenConfig.CAData))
	return kubeconfigPrefix + hex.EncodeToString(sum[:4])
}

// gardenAccess says whether the pods of a ControllerDeployment get access to the garden.
func gardenAccess(deployment *gardencorev1.ControllerDeployment) bool {
	return ptr.Deref(deployment.InjectGardenKubeconfig, false)
}

// accessObjects are the Secrets by which an extension authenticates to the garden.
func (r *reconciler) accessObjects(ci *corev1beta1.ControllerInstallation) ([]client.Object, error) {
	kubeconfig, err := r.kubeconfig()
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	labels, err := json.Marshal(map[string]string{constants.ControllerRegistrationName: ci.Spec.RegistrationRef.Name})
	if err != nil {
		return nil, err
	}
	return []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(ci), Name: r.kubeconfigName()},
			Immutable:  new(true),
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		},
		// The token requestor writes the token into it.
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespaceName(ci), Name: accessSecret,
				Labels: map[string]string{
					resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
					resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassGarden,
				},
				Annotations: map[string]string{
					resourcesv1alpha1.ServiceAccountName:   namespaceName(ci),
					resourcesv1alpha1.ServiceAccountLabels: string(labels),
				},
			},
			Type: corev1.SecretTypeOpaque,
		},
	}, nil
}

// managedObjects are the ManagedResource and the Secret with its objects, which may have data of Secrets.
func managedObjects(ci *corev1beta1.ControllerInstallation, objects []*unstructured.Unstructured, secret bool) ([]client.Object, error) {
	var manifests bytes.Buffer
	compressed := brotli.NewWriter(&manifests)
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(compressed, "---\n%s", data); err != nil {
			return nil, err
		}
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: ci.Name, Labels: map[string]string{
		Label: ci.Name, constants.ControllerRegistrationName: ci.Spec.RegistrationRef.Name,
	}}
	if secret {
		meta.Annotations = map[string]string{AnnotationSecretData: "true"}
	}
	return []client.Object{
		&corev1.Secret{
			ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{resourcesv1alpha1.CompressedDataKey: manifests.Bytes()},
		},
		&resourcesv1alpha1.ManagedResource{
			ObjectMeta: meta,
			Spec: resourcesv1alpha1.ManagedResourceSpec{
				Class: new(class), SecretRefs: []corev1.LocalObjectReference{{Name: ci.Name}},
			},
		},
	}, nil
}

// values are the values of the ControllerDeployment, with those about the garden and the seed that extensions may rely on. The latter win.
// Only the former have placeholders for data: what looks like one in a Seed, also in its annotations, stays as it is.
func (r *reconciler) values(
	deployment *gardencorev1.ControllerDeployment, data *chart.Resources, seed *corev1beta1.Seed, garden string,
) (map[string]any, error) {
	values := map[string]any{}
	if raw := deployment.Helm.Values; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &values); err != nil {
			return nil, err
		}
	}
	if err := data.Expand(values); err != nil {
		return nil, err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&seed.Spec)
	if err != nil {
		return nil, err
	}
	gates := map[string]any{}
	for gate, on := range r.FeatureGates {
		gates[gate] = on
	}
	gardenValues := map[string]any{"clusterIdentity": garden}
	if gardenAccess(deployment) {
		gardenValues["genericKubeconfigSecretName"] = r.kubeconfigName()
	}
	networks, _ := spec["networks"].(map[string]any)
	volumeProvider, volumeProviders := "", any(nil)
	if volume := seed.Spec.Volume; volume != nil && len(volume.Providers) > 0 {
		volumeProvider = volume.Providers[0].Name
		volumeProviders, _, _ = unstructured.NestedSlice(spec, "volume", "providers")
	}
	seedValues := map[string]any{
		"name": seed.Name, "clusterIdentity": ptr.Deref(seed.Status.ClusterIdentity, ""),
		"annotations": stringMap(seed.Annotations), "labels": stringMap(seed.Labels), "spec": spec,
		"provider": seed.Spec.Provider.Type, "region": seed.Spec.Provider.Region,
		"volumeProvider": volumeProvider, "volumeProviders": volumeProviders,
		"protected": slices.ContainsFunc(seed.Spec.Taints, func(t corev1beta1.SeedTaint) bool { return t.Key == constants.SeedTaintProtected }),
		"visible":   seed.Spec.Settings == nil || seed.Spec.Settings.Scheduling == nil || seed.Spec.Settings.Scheduling.Visible,
		"networks":  networks, "blockCIDRs": networks["blockCIDRs"], "taints": spec["taints"],
	}
	if seed.Spec.Ingress != nil {
		seedValues["ingressDomain"] = seed.Spec.Ingress.Domain
	}
	chart.Merge(values, map[string]any{"gardener": map[string]any{
		"version": r.Version, "garden": gardenValues, "gardenlet": map[string]any{"featureGates": gates}, "seed": seedValues,
	}})
	return values, nil
}

// stringMap is a map in the form that templates can range over.
func stringMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

// injectSeedName adds the name of the seed to the environment of all containers that have none.
func injectSeedName(spec *corev1.PodSpec, seedName string) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if !hasEnv(containers[i], envSeedName) {
				containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: envSeedName, Value: seedName})
			}
		}
	}
}

// injectAccess adds the kubeconfig for the garden to all containers that have none of their own.
func injectAccess(spec *corev1.PodSpec, kubeconfigSecret string) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == accessVolume })
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: accessVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{project(kubeconfigSecret, "kubeconfig"), project(accessSecret, "token")},
	}}})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if hasEnv(*c, envKubeconfig) {
				continue
			}
			c.Env = append(c.Env, corev1.EnvVar{Name: envKubeconfig, Value: accessPath + "/kubeconfig"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: accessVolume, MountPath: accessPath, ReadOnly: true})
		}
	}
}

func hasEnv(c corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// project is one key of a Secret as a file. It may come later than the pod.
func project(secret, key string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: key}}, Optional: new(false),
	}}
}
