package local

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// userDataKey is the key of the user data in the Secret of a class.
	userDataKey = "userData"
	// machineNameLabel is the label of machines with the name of their deployment.
	machineNameLabel = "name"
	// purposeMachineClass is the purpose of the Secrets of classes.
	purposeMachineClass = "machineclass"
	// architectureCapability is the capability of machine images with their CPU architecture.
	architectureCapability = "architecture"
	// defaultArchitecture is the architecture of pools that set none.
	defaultArchitecture = "amd64"
)

// machines are the objects for the machines of a pool in one zone.
type machines struct {
	class      *machinev1alpha1.MachineClass
	secret     *corev1.Secret
	deployment *machinev1alpha1.MachineDeployment
	published  extensionsv1alpha1.MachineDeployment
}

// userDataOf returns the content of a key of a Secret in the namespace of the Worker.
type userDataOf func(corev1.SecretKeySelector) ([]byte, error)

// render returns the machines of all pools, and their images. The replicas of existing deployments are kept within their limits, as the
// cluster-autoscaler may scale them.
func render(
	worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, registries []localv1alpha1.MachineRegistry,
	existing map[string]*machinev1alpha1.MachineDeployment, userData userDataOf,
) ([]machines, []localv1alpha1.MachineImage, error) {
	var all []machines
	var images []localv1alpha1.MachineImage
	for i := range worker.Spec.Pools {
		pool := &worker.Spec.Pools[i]
		at := field.NewPath("spec", "pools").Index(i)
		if err := noConfig(pool.ProviderConfig); err != nil {
			return nil, nil, fmt.Errorf("pool %q: %w", pool.Name, err)
		}
		image, err := imageOf(worker, cluster, pool, at.Child("machineImage"))
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(images, func(i localv1alpha1.MachineImage) bool {
			return i.Name == image.Name && i.Version == image.Version && i.Image == image.Image
		}) {
			images = append(images, *image)
		}
		script, err := userData(pool.UserDataSecretRef)
		if err != nil {
			return nil, nil, fmt.Errorf("user data of pool %q: %w", pool.Name, err)
		}
		capacity, err := capacityOf(pool, cluster, at.Child("machineType"))
		if err != nil {
			return nil, nil, err
		}
		hash, err := extension.WorkerPoolHash(pool, cluster, image.Image)
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(&localv1alpha1.MachineProviderSpec{
			TypeMeta: metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "MachineProviderSpec"},
			Image:    image.Image, Registries: registries,
		})
		if err != nil {
			return nil, nil, err
		}
		zones := pool.Zones
		if len(zones) == 0 {
			zones = []string{""}
		}
		annotations, err := extension.DeploymentAnnotations(pool, cluster)
		if err != nil {
			return nil, nil, err
		}
		for zone := range zones {
			m := part(worker, cluster, pool, zone, zones, hash, existing)
			m.deployment.Annotations, m.class.NodeTemplate.Capacity = annotations, capacity
			m.class.ProviderSpec = runtime.RawExtension{Raw: raw}
			m.secret.Data = map[string][]byte{userDataKey: script}
			all = append(all, m)
		}
	}
	return all, images, nil
}

// part returns the objects for one zone of a pool.
func part(
	worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone int, zones []string, hash string,
	existing map[string]*machinev1alpha1.MachineDeployment,
) machines {
	name := worker.Namespace + "-" + pool.Name
	labels := map[string]string{}
	for key, value := range pool.Labels {
		labels[key] = value
	}
	if zones[zone] != "" {
		name = fmt.Sprintf("%s-z%d", name, zone+1)
		labels[corev1.LabelTopologyZone] = zones[zone]
		labels[corev1.LabelTopologyRegion] = worker.Spec.Region
	}
	className := name + "-" + hash
	minimum, maximum := extension.Share(pool.Minimum, zone, len(zones)), extension.Share(pool.Maximum, zone, len(zones))
	replicas := minimum
	if deployment := existing[name]; deployment != nil {
		replicas = min(max(deployment.Spec.Replicas, minimum), maximum)
	}
	if hibernated(cluster) {
		replicas = 0
	}
	surge, unavailable := extension.ShareOf(pool.MaxSurge, zone, len(zones)), extension.ShareOf(pool.MaxUnavailable, zone, len(zones))
	if zero(surge) && zero(unavailable) { // otherwise no machine could be replaced
		if zero(pool.MaxSurge) {
			unavailable = intstr.FromInt32(1)
		} else {
			surge = intstr.FromInt32(1)
		}
	}
	meta := metav1.ObjectMeta{Namespace: worker.Namespace, Name: className, Labels: map[string]string{constants.GardenerPurpose: purposeMachineClass}}
	selector := map[string]string{machineNameLabel: name}
	return machines{
		secret: &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque},
		class: &machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: worker.Namespace, Name: className},
			Provider:   localv1alpha1.MachineProvider,
			SecretRef:  &corev1.SecretReference{Namespace: worker.Namespace, Name: className},
			NodeTemplate: &machinev1alpha1.NodeTemplate{
				InstanceType: pool.MachineType, Region: worker.Spec.Region, Zone: zones[zone], Architecture: new(ptr.Deref(pool.Architecture, defaultArchitecture)),
			},
		},
		deployment: &machinev1alpha1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: worker.Namespace, Name: name, Labels: map[string]string{constants.WorkerPool: pool.Name},
			},
			Spec: machinev1alpha1.MachineDeploymentSpec{
				Replicas: replicas, MinReadySeconds: 1,
				AutoPreserveFailedMachineMax: preserved(pool, zone, len(zones)),
				Selector:                     &metav1.LabelSelector{MatchLabels: selector},
				Strategy:                     extension.UpdateStrategy(pool, surge, unavailable),
				Template: machinev1alpha1.MachineTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: selector},
					Spec: machinev1alpha1.MachineSpec{
						MachineConfiguration: settings(pool.MachineControllerManager),
						Class:                machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: className},
						NodeTemplate: machinev1alpha1.NodeTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pool.Annotations}, Spec: corev1.NodeSpec{Taints: pool.Taints},
						},
					},
				},
			},
		},
		published: extensionsv1alpha1.MachineDeployment{
			Name: name, Minimum: minimum, Maximum: maximum, Priority: pool.Priority, AutoPreserveFailedMachineMax: preserved(pool, zone, len(zones)),
		},
	}
}

func zero(value intstr.IntOrString) bool {
	return value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && strings.TrimSuffix(value.StrVal, "%") == "0"
}

func preserved(pool *extensionsv1alpha1.WorkerPool, zone, zones int) *int32 {
	if pool.MachineControllerManager == nil || pool.MachineControllerManager.AutoPreserveFailedMachineMax == nil {
		return nil
	}
	return new(extension.Share(*pool.MachineControllerManager.AutoPreserveFailedMachineMax, zone, zones))
}

// settings are the timeouts of the machines of a pool.
func settings(from *corev1beta1.MachineControllerManagerSettings) machinev1alpha1.MachineConfiguration {
	if from == nil {
		return machinev1alpha1.MachineConfiguration{}
	}
	out := machinev1alpha1.MachineConfiguration{
		DrainTimeout: from.MachineDrainTimeout, HealthTimeout: from.MachineHealthTimeout, CreationTimeout: from.MachineCreationTimeout,
		InPlaceUpdateTimeout: from.InPlaceUpdateTimeout, DisableHealthTimeout: from.DisableHealthTimeout,
		MachinePreserveTimeout: from.MachinePreserveTimeout, MaxEvictRetries: from.MaxEvictRetries,
	}
	if len(from.NodeConditions) > 0 {
		out.NodeConditions = new(strings.Join(from.NodeConditions, ","))
	}
	return out
}

// hibernated reports whether hibernation of the shoot is enabled.
func hibernated(cluster *extension.Cluster) bool {
	hibernation := cluster.Shoot.Spec.Hibernation
	return hibernation != nil && ptr.Deref(hibernation.Enabled, false)
}

// imageOf returns the machine image of a pool: the one in the CloudProfile or, if it was removed there, the one in the status of the Worker.
func imageOf(
	worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, at *field.Path,
) (*localv1alpha1.MachineImage, error) {
	if pool.MachineImage == nil {
		return nil, errorcode.With(field.Required(at, "machines need an image"), corev1beta1.ErrorConfigurationProblem)
	}
	profile := &localv1alpha1.CloudProfileConfig{}
	if config := cluster.CloudProfile.Spec.ProviderConfig; config != nil {
		if err := json.Unmarshal(config.Raw, profile); err != nil {
			return nil, errorcode.With(fmt.Errorf("the configuration in CloudProfile %q is not valid", cluster.CloudProfile.Name), corev1beta1.ErrorConfigurationProblem)
		}
	}
	found := &localv1alpha1.MachineImage{Name: pool.MachineImage.Name, Version: pool.MachineImage.Version}
	architecture := ptr.Deref(pool.Architecture, defaultArchitecture)
	for _, image := range profile.MachineImages {
		for _, version := range image.Versions {
			if image.Name != found.Name || version.Version != found.Version {
				continue
			}
			for _, flavor := range version.CapabilityFlavors {
				if fits := flavor.Capabilities[architectureCapability]; len(fits) == 0 || slices.Contains(fits, architecture) {
					found.Image, found.Capabilities = flavor.Image, flavor.Capabilities
					return found, nil
				}
			}
			if version.Image != "" {
				found.Image = version.Image
				return found, nil
			}
		}
	}
	before := &localv1alpha1.WorkerStatus{}
	if status := worker.Status.ProviderStatus; status != nil {
		_ = json.Unmarshal(status.Raw, before) // written by this controller; an invalid status has no image
	}
	for _, image := range before.MachineImages {
		if image.Name == found.Name && image.Version == found.Version {
			return &image, nil
		}
	}
	err := field.NotFound(at, found.Name+" "+found.Version)
	return nil, errorcode.With(fmt.Errorf("CloudProfile %q: %w", cluster.CloudProfile.Name, err), corev1beta1.ErrorConfigurationProblem)
}

// capacityOf returns the capacity of the machines of a pool.
func capacityOf(pool *extensionsv1alpha1.WorkerPool, cluster *extension.Cluster, at *field.Path) (corev1.ResourceList, error) {
	if pool.NodeTemplate != nil && len(pool.NodeTemplate.Capacity) > 0 {
		return pool.NodeTemplate.Capacity, nil
	}
	for _, machineType := range cluster.CloudProfile.Spec.MachineTypes {
		if machineType.Name == pool.MachineType {
			return corev1.ResourceList{
				corev1.ResourceCPU: machineType.CPU, corev1.ResourceMemory: machineType.Memory,
			}, nil
		}
	}
	return nil, errorcode.With(field.NotFound(at, pool.MachineType), corev1beta1.ErrorConfigurationProblem)
}
