package shootquotavalidator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// What quotas count, besides CPU and memory.
const (
	metricGPU             corev1.ResourceName = "gpu"
	metricStorageStandard corev1.ResourceName = "storage.standard"
	metricStoragePremium  corev1.ResourceName = "storage.premium"
	metricLoadBalancer    corev1.ResourceName = "loadbalancer"
)

// resources returns the resources that a shoot uses at most.
func resources(spec *corev1beta1.ShootSpec, profile *corev1beta1.CloudProfileSpec) (corev1.ResourceList, error) {
	// The kube-apiserver of the shoot is behind one load balancer, the ingress addon behind another.
	balancers := int64(1)
	if addons := spec.Addons; addons != nil && addons.NginxIngress != nil &&
		addons.NginxIngress.Enabled {
		balancers++
	}
	total := corev1.ResourceList{metricLoadBalancer: *resource.NewQuantity(balancers, resource.DecimalSI)}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		machineType := cloudprofile.FindMachineType(profile, worker.Machine.Type)
		if machineType == nil {
			return nil, fmt.Errorf("the cloud profile has no machine type %q", worker.Machine.Type)
		}
		class, size, err := storage(worker, machineType, profile)
		if err != nil {
			return nil, err
		}
		metric := metricStorageStandard
		if class == constants.VolumeClassPremium {
			metric = metricStoragePremium
		}
		for name, quantity := range map[corev1.ResourceName]resource.Quantity{
			corev1.ResourceCPU: machineType.CPU, metricGPU: machineType.GPU, corev1.ResourceMemory: machineType.Memory, metric: size,
		} {
			quantity = quantity.DeepCopy()
			quantity.Mul(int64(worker.Maximum))
			add(total, corev1.ResourceList{name: quantity})
		}
	}
	return total, nil
}

// countsTypes reports whether the size of machines and volumes matters for metrics.
func countsTypes(metrics corev1.ResourceList) bool {
	for name := range metrics {
		if name != metricLoadBalancer {
			return true
		}
	}
	return false
}

// storage returns the class and the size of the root volume of a worker's machines.
func storage(
	worker *corev1beta1.Worker, machineType *corev1beta1.MachineType, profile *corev1beta1.CloudProfileSpec) (string, resource.Quantity, error,
) {
	var class string
	switch {
	case machineType.Storage != nil:
		class = machineType.Storage.Class
		if machineType.Storage.StorageSize != nil {
			return class, *machineType.Storage.StorageSize, nil
		}
	case worker.Volume != nil && worker.Volume.Type != nil:
		volumeType := cloudprofile.FindVolumeType(profile, *worker.Volume.Type)
		if volumeType == nil {
			return "", resource.Quantity{}, fmt.Errorf("the cloud profile has no volume type %q", *worker.Volume.Type)
		}
		class = volumeType.Class
	default:
		return "", resource.Quantity{}, fmt.Errorf("worker pool %q has no volume type, which the quota depends on", worker.Name)
	}
	if worker.Volume == nil {
		return class, resource.Quantity{}, nil
	}
	size, err := resource.ParseQuantity(worker.Volume.VolumeSize)
	if err != nil {
		return "", resource.Quantity{}, fmt.Errorf("volume size of worker pool %q: %w", worker.Name, err)
	}
	return class, size, nil
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name].DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

// over returns the names of the resources of which more is used than the limits allow, sorted.
func over(used, limits corev1.ResourceList) []string {
	var out []string
	for name, limit := range limits {
		if quantity, ok := used[name]; ok && quantity.Cmp(limit) > 0 {
			out = append(out, string(name))
		}
	}
	slices.Sort(out)
	return out
}
