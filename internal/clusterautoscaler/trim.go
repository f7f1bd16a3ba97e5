package clusterautoscaler

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"gardener.cloud/gardener/internal/kube/quantities"
)

// mostOfAnything is more than any node or volume has of a resource, and so little that sums of it fit in the numbers of the scheduler.
const mostOfAnything = 1e14

// newFactory returns informers of a shoot.
func newFactory(shoot kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(shoot, 0, informers.WithTransform(trim))
}

// trim prepares an object of the shoot for the caches. Managed fields are a good part of it, and are not read. Adding and comparing quantities takes hours
// and gigabytes if users of the shoot have written an exponent of nine digits, which its API server accepts: these become mostOfAnything.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		boundPod(&o.Spec)
		for _, statuses := range [][]corev1.ContainerStatus{o.Status.InitContainerStatuses, o.Status.ContainerStatuses} {
			for i := range statuses {
				bound(statuses[i].AllocatedResources)
				boundRequirements(statuses[i].Resources)
			}
		}
		bound(o.Status.AllocatedResources)
		boundRequirements(o.Status.Resources)
	case *appsv1.DaemonSet:
		boundPod(&o.Spec.Template.Spec)
	case *corev1.PersistentVolumeClaim:
		bound(o.Spec.Resources.Requests)
		bound(o.Status.Capacity)
	case *corev1.PersistentVolume:
		bound(o.Spec.Capacity)
	case *storagev1.CSIStorageCapacity:
		for _, q := range []*resource.Quantity{o.Capacity, o.MaximumVolumeSize} {
			if q != nil && quantities.Excessive(*q) {
				*q = *resource.NewQuantity(mostOfAnything, resource.DecimalSI)
			}
		}
	}
	return cache.TransformStripManagedFields()(object)
}

func boundPod(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			boundRequirements(&containers[i].Resources)
		}
	}
	boundRequirements(pod.Resources)
	bound(pod.Overhead)
}

func boundRequirements(r *corev1.ResourceRequirements) {
	if r != nil {
		bound(r.Requests)
		bound(r.Limits)
	}
}

func bound(list corev1.ResourceList) {
	for name, quantity := range list {
		if quantities.Excessive(quantity) {
			list[name] = *resource.NewQuantity(mostOfAnything, resource.DecimalSI)
		}
	}
}
