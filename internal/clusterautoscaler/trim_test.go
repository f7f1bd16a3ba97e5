package clusterautoscaler

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fakeclient "k8s.io/client-go/kubernetes/fake"

	"gardener.cloud/gardener/internal/kube/quantities"
)

// A user of the shoot writes quantities with an exponent of nine digits, which take hours to add or to compare. No decision gets to see them.
func TestQuantitiesThatTakeHours(t *testing.T) {
	list := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1e999999999"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	requirements := func() *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: list(), Limits: list()}
	}
	containers := func() []corev1.Container { return []corev1.Container{{Name: "c", Resources: *requirements()}} }
	statuses := func() []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "c", AllocatedResources: list(), Resources: requirements()}}
	}
	spec := func() corev1.PodSpec {
		return corev1.PodSpec{InitContainers: containers(), Containers: containers(), Resources: requirements(), Overhead: list()}
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	shoot := fakeclient.NewClientset(
		&corev1.Pod{ObjectMeta: meta, Spec: spec(), Status: corev1.PodStatus{
			InitContainerStatuses: statuses(), ContainerStatuses: statuses(), AllocatedResources: list(), Resources: requirements(),
		}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec()}}},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: list()}},
			Status: corev1.PersistentVolumeClaimStatus{Capacity: list()},
		},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PersistentVolumeSpec{Capacity: list()}},
		&storagev1.CSIStorageCapacity{ObjectMeta: meta, Capacity: new(resource.MustParse("1e999999999")), MaximumVolumeSize: new(resource.MustParse("1e999999999"))},
	)
	factory := newFactory(shoot)
	core := factory.Core().V1()
	pods, claims, volumes := core.Pods().Lister(), core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	sets, capacities := factory.Apps().V1().DaemonSets().Lister(), factory.Storage().V1().CSIStorageCapacities().Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	check := func(where string, lists ...corev1.ResourceList) {
		t.Helper()
		for i, list := range lists {
			if len(list) == 0 {
				t.Errorf("%s, list %d: there are no quantities", where, i)
			}
			for name, quantity := range list {
				if quantities.Excessive(quantity) {
					t.Errorf("%s, list %d: %s is still too large", where, i, name)
				}
			}
			if memory, ok := list[corev1.ResourceMemory]; ok && memory.Value() != 1<<30 {
				t.Errorf("%s, list %d: another quantity has changed: %s", where, i, memory.String())
			}
		}
	}
	checkSpec := func(where string, spec *corev1.PodSpec) {
		t.Helper()
		i, c := spec.InitContainers[0].Resources, spec.Containers[0].Resources
		check(where, i.Requests, i.Limits, c.Requests, c.Limits, spec.Resources.Requests, spec.Resources.Limits, spec.Overhead)
	}
	if all, err := pods.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Error(len(all), err)
	} else {
		checkSpec("Pod", &all[0].Spec)
		status := all[0].Status
		i, c := status.InitContainerStatuses[0], status.ContainerStatuses[0]
		check("status of the Pod", i.AllocatedResources, i.Resources.Requests, c.AllocatedResources, c.Resources.Requests, status.AllocatedResources, status.Resources.Requests)
	}
	if all, err := sets.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Error(len(all), err)
	} else {
		checkSpec("DaemonSet", &all[0].Spec.Template.Spec)
	}
	if all, err := claims.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Error(len(all), err)
	} else {
		check("PersistentVolumeClaim", all[0].Spec.Resources.Requests, all[0].Status.Capacity)
	}
	if all, err := volumes.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Error(len(all), err)
	} else {
		check("PersistentVolume", all[0].Spec.Capacity)
	}
	if all, err := capacities.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Error(len(all), err)
	} else {
		check("CSIStorageCapacity", corev1.ResourceList{"a": *all[0].Capacity, "b": *all[0].MaximumVolumeSize})
	}
}
