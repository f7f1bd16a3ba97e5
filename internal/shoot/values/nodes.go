package values

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/pkg/secrets"
)

// OperatingSystemConfigs returns the values of the OperatingSystemConfigs of all worker pools.
func (s Source) OperatingSystemConfigs() (operatingsystemconfig.Values, error) {
	shoot, err := s.shoot()
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	set, err := s.Credentials.All()
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	dns, err := dnsServers(shoot)
	if err != nil {
		return operatingsystemconfig.Values{}, err
	}
	kubernetes := shoot.Spec.Kubernetes
	v := operatingsystemconfig.Values{
		Namespace: s.Namespace, KubernetesVersion: kubernetes.Version, APIServerURL: "https://" + s.Hosts()[0],
		ClusterCABundle: set.Bundle(constants.SecretNameCACluster), KubeletCABundle: set.Bundle(constants.SecretNameCAKubelet),
		ClusterDNS: dns, Kubelet: kubernetes.Kubelet,
	}
	for _, key := range []*corev1.Secret{set.Current(constants.SecretNameSSHKeyPair), set.Old(constants.SecretNameSSHKeyPair)} {
		if key != nil && shoot.Spec.Provider.SSHAccessEnabled() {
			v.SSHPublicKeys = append(v.SSHPublicKeys, strings.TrimSpace(string(key.Data[secrets.DataKeySSHAuthorizedKeys])))
		}
	}
	for _, worker := range shoot.Spec.Provider.Workers {
		rotation := observed.PoolRotation(shoot, worker.Name)
		hash, err := operatingsystemconfig.PoolHash(operatingsystemconfig.LatestHashVersion, &worker, kubernetes.Version, kubernetes.Kubelet,
			nodelocaldns.Enabled(shoot), rotation)
		if err != nil {
			return v, fmt.Errorf("worker pool %q: %w", worker.Name, err)
		}
		p := operatingsystemconfig.Pool{Worker: worker, Hash: hash, Rotation: rotation, Labels: nodeLabels(shoot, &worker, hash)}
		if err := s.nodeImages(&p, operatingsystemconfig.KubernetesVersion(&worker, kubernetes.Version)); err != nil {
			return v, err
		}
		if p.KubeletDataVolumeSize, err = kubeletVolume(&worker); err != nil {
			return v, err
		}
		v.Pools = append(v.Pools, p)
	}
	return v, nil
}

// nodeImages sets the images of a pool with a version of Kubernetes: those for the architecture of its machines.
func (s Source) nodeImages(p *operatingsystemconfig.Pool, version string) error {
	for _, i := range []struct {
		image                           *string
		name, targetVersion, defaultTag string
	}{
		{&p.NodeAgentImage, "gardener", "", s.GardenerVersion},
		{&p.SandboxImage, "pause", "", ""},
		{&p.KubeletImage, "hyperkube", version, ""},
	} {
		found, err := s.Images.Find(i.name, imagevector.Query{TargetVersion: i.targetVersion, Architecture: ptr.Deref(p.Worker.Machine.Architecture, "")})
		if err != nil {
			return fmt.Errorf("worker pool %q: %w", p.Worker.Name, err)
		}
		*i.image = found.WithDefaultTag(i.defaultTag).String()
	}
	return nil
}

// MachineControllerManager returns the values of the machine-controller-manager with a number of pods. Its image is the one with all processes of
// Gardener, or that of the original, if an operator has added it to the images.
func (s Source) MachineControllerManager(replicas int32) (machinecontrollermanager.Values, error) {
	image, set, err := s.gardenerImageAndCredentials()
	if err != nil {
		return machinecontrollermanager.Values{}, err
	}
	if slices.ContainsFunc(s.Images, func(source imagevector.Source) bool { return source.Name == machinecontrollermanager.Name }) {
		if image, err = s.image(machinecontrollermanager.Name); err != nil {
			return machinecontrollermanager.Values{}, err
		}
	}
	return machinecontrollermanager.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig),
	}, nil
}

// kubeletVolume returns the size of the volume for the data of the kubelet, if the pool has one.
func kubeletVolume(worker *corev1beta1.Worker) (*int64, error) {
	for _, volume := range worker.DataVolumes {
		if volume.Name != ptr.Deref(worker.KubeletDataVolumeName, "") {
			continue
		}
		size, err := resource.ParseQuantity(volume.VolumeSize)
		if err != nil {
			return nil, fmt.Errorf("size of data volume %q of worker pool %q: %w", volume.Name, worker.Name, err)
		}
		return new(size.Value()), nil
	}
	return nil, nil
}

// dnsServers returns the addresses of the DNS server of pods.
func dnsServers(shoot *corev1beta1.Shoot) ([]net.IP, error) {
	networks, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return nil, err
	}
	servers := networks.DNS()
	if nodelocaldns.Enabled(shoot) {
		servers = nodelocaldns.Resolvers(shoot, networks)
	}
	var list []net.IP
	for _, address := range servers {
		list = append(list, address.AsSlice())
	}
	return list, nil
}

// nodeLabels returns the labels of the nodes of a pool. Source: constants, and the contract of the Worker.
func nodeLabels(shoot *corev1beta1.Shoot, worker *corev1beta1.Worker, hash string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, worker.Labels)
	labels["node.kubernetes.io/role"] = "node"
	labels[corev1.LabelArchStable] = ptr.Deref(worker.Machine.Architecture, "")
	if labels[corev1.LabelArchStable] == "" {
		labels[corev1.LabelArchStable] = constants.ArchitectureAMD64
	}
	labels[constants.WorkerPool], labels[constants.WorkerPoolDeprecated] = worker.Name, worker.Name
	labels[constants.WorkerKubernetesVersion] = operatingsystemconfig.KubernetesVersion(worker, shoot.Spec.Kubernetes.Version)
	labels[constants.WorkerPoolGardenerNodeAgentSecretName] = operatingsystemconfig.SecretName(worker.Name, hash)
	labels[constants.WorkerPoolSystemComponents] = fmt.Sprint(worker.SystemComponents == nil || worker.SystemComponents.Allow)
	labels[constants.NodeLocalDNS] = fmt.Sprint(nodelocaldns.Enabled(shoot))
	if worker.ControlPlane != nil {
		labels[constants.NodeRoleControlPlane] = ""
	}
	if worker.CRI != nil {
		labels[constants.WorkerCRIName] = string(worker.CRI.Name)
	}
	maps.Copy(labels, operatingsystemconfig.ContainerRuntimeLabels(worker))
	return labels
}

// Worker returns what sets the spec of a Worker, given the pools with their OperatingSystemConfigs.
func (s Source) Worker(list []nodes.Pool) (func(*extensionsv1alpha1.Worker), error) {
	shoot := s.Shoot
	pools := make([]extensionsv1alpha1.WorkerPool, 0, len(list))
	for i := range list {
		p, err := workerPool(s.State, &list[i])
		if err != nil {
			return nil, err
		}
		pools = append(pools, *p)
	}
	set, err := s.Credentials.All()
	if err != nil {
		return nil, err
	}
	status, err := s.Infrastructure.ProviderStatus()
	if err != nil {
		return nil, err
	}
	return func(obj *extensionsv1alpha1.Worker) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, shoot.Spec.Provider.Type, nil)
		obj.Spec.Region, obj.Spec.InfrastructureProviderStatus = shoot.Spec.Region, status
		obj.Spec.SecretRef = corev1.SecretReference{Namespace: s.Namespace, Name: constants.SecretNameCloudProvider}
		obj.Spec.SSHPublicKey = nil // SSH access may have been disabled
		if key := set.Current(constants.SecretNameSSHKeyPair); key != nil && shoot.Spec.Provider.SSHAccessEnabled() {
			obj.Spec.SSHPublicKey = key.Data[secrets.DataKeySSHAuthorizedKeys]
		}
		obj.Spec.Pools = pools
	}, nil
}

// workerPool returns a pool of the Worker.
func workerPool(s *observed.State, p *nodes.Pool) (*extensionsv1alpha1.WorkerPool, error) {
	if p.Provision.Status.CloudConfig == nil {
		return nil, fmt.Errorf("OperatingSystemConfig %q has no user data, although its extension reports that it is reconciled", p.Provision.Name)
	}
	worker, kubernetes := &p.Worker, s.Shoot.Spec.Kubernetes
	version := operatingsystemconfig.KubernetesVersion(worker, kubernetes.Version)
	w := &extensionsv1alpha1.WorkerPool{
		Name: worker.Name, MachineType: worker.Machine.Type, Minimum: worker.Minimum, Maximum: worker.Maximum,
		MaxSurge: ptr.Deref(worker.MaxSurge, intstr.FromInt32(1)), MaxUnavailable: ptr.Deref(worker.MaxUnavailable, intstr.FromInt32(0)),
		Annotations: worker.Annotations, Labels: nodeLabels(s.Shoot, worker, p.Hash), Taints: worker.Taints,
		NodeAgentSecretName: new(operatingsystemconfig.SecretName(worker.Name, p.Hash)), ProviderConfig: worker.ProviderConfig,
		UserDataSecretRef: corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Provision.Status.CloudConfig.SecretRef.Name}, Key: extensionsv1alpha1.OperatingSystemConfigSecretDataKey,
		},
		KubeletDataVolumeName: worker.KubeletDataVolumeName, Zones: worker.Zones, MachineControllerManager: machineSettings(s.CloudProfile, worker),
		KubernetesVersion: &version, KubeletConfig: worker.KubeletConfig(kubernetes.Kubelet), Architecture: worker.Machine.Architecture,
		Priority: worker.Priority, UpdateStrategy: worker.UpdateStrategy, NodeTemplate: nodeTemplate(s.CloudProfile, worker),
	}
	if image := worker.Machine.Image; image != nil {
		w.MachineImage = &extensionsv1alpha1.MachineImage{Name: image.Name, Version: ptr.Deref(image.Version, "")}
	}
	if v := worker.Volume; v != nil {
		w.Volume = &extensionsv1alpha1.Volume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted}
	}
	for _, v := range worker.DataVolumes {
		w.DataVolumes = append(w.DataVolumes, extensionsv1alpha1.DataVolume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted})
	}
	if c := worker.ClusterAutoscaler; c != nil {
		w.ClusterAutoscaler = &extensionsv1alpha1.ClusterAutoscalerOptions{
			ScaleDownUtilizationThreshold: decimal(c.ScaleDownUtilizationThreshold), ScaleDownGPUUtilizationThreshold: decimal(c.ScaleDownGpuUtilizationThreshold),
			ScaleDownUnneededTime: c.ScaleDownUnneededTime, ScaleDownUnreadyTime: c.ScaleDownUnreadyTime, MaxNodeProvisionTime: c.MaxNodeProvisionTime,
		}
	}
	return w, nil
}

// machineSettings returns the settings of a pool for its machines. Without a creation timeout of its own, it has that of its machine type in the
// CloudProfile.
func machineSettings(profile *corev1beta1.CloudProfile, worker *corev1beta1.Worker) *corev1beta1.MachineControllerManagerSettings {
	settings := worker.MachineControllerManager
	if profile == nil || settings != nil && settings.MachineCreationTimeout != nil {
		return settings
	}
	machine := cloudprofile.FindMachineType(&profile.Spec, worker.Machine.Type)
	if machine == nil || machine.MachineControllerManager == nil || machine.MachineControllerManager.MachineCreationTimeout == nil {
		return settings
	}
	combined := corev1beta1.MachineControllerManagerSettings{}
	if settings != nil {
		combined = *settings
	}
	combined.MachineCreationTimeout = machine.MachineControllerManager.MachineCreationTimeout
	return &combined
}

// decimal encodes a number as resources of extensions have it, in which there are no fractions.
func decimal(value *float64) *string {
	if value == nil {
		return nil
	}
	return new(fmt.Sprint(*value))
}

// nodeTemplate returns the capacity of a node of a pool, as far as the CloudProfile has it.
func nodeTemplate(profile *corev1beta1.CloudProfile, worker *corev1beta1.Worker) *extensionsv1alpha1.NodeTemplate {
	if profile == nil {
		return nil
	}
	for _, machine := range profile.Spec.MachineTypes {
		if machine.Name != worker.Machine.Type {
			continue
		}
		template := &extensionsv1alpha1.NodeTemplate{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: machine.CPU, corev1.ResourceMemory: machine.Memory, "gpu": machine.GPU,
		}}
		if storage := machine.Storage; storage != nil && storage.StorageSize != nil {
			template.Capacity[corev1.ResourceEphemeralStorage] = *storage.StorageSize
		}
		if volume := worker.Volume; volume != nil {
			if size, err := resource.ParseQuantity(volume.VolumeSize); err == nil {
				template.Capacity[corev1.ResourceEphemeralStorage] = size
			}
		}
		return template
	}
	return nil
}

// cores returns how many cores the machines of all pools have at least, as far as the CloudProfile has it.
func cores(s *observed.State) (cores int64) {
	for i := range s.Shoot.Spec.Provider.Workers {
		worker := &s.Shoot.Spec.Provider.Workers[i]
		if template := nodeTemplate(s.CloudProfile, worker); template != nil {
			cores += int64(worker.Minimum) * template.Capacity.Cpu().Value()
		}
	}
	return cores
}
