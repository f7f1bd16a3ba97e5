package managedresource

import (
	"fmt"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
)

// Applied returns why the objects of a ManagedResource are not applied yet, or nil if they are.
func Applied(mr *resourcesv1alpha1.ManagedResource) error {
	if mr.Status.ObservedGeneration < mr.Generation {
		return fmt.Errorf("ManagedResource %s/%s: gardener-resource-manager has not observed its last change", mr.Namespace, mr.Name)
	}
	return is(mr, resourcesv1alpha1.ResourcesApplied, corev1beta1.ConditionTrue)
}

// Healthy returns why the objects of a ManagedResource are not healthy, or nil if they are.
func Healthy(mr *resourcesv1alpha1.ManagedResource) error {
	return is(mr, resourcesv1alpha1.ResourcesHealthy, corev1beta1.ConditionTrue)
}

// RolledOut returns why the objects of a ManagedResource are still being rolled out, or nil if they are not.
func RolledOut(mr *resourcesv1alpha1.ManagedResource) error {
	return is(mr, resourcesv1alpha1.ResourcesProgressing, corev1beta1.ConditionFalse)
}

// is returns why a condition has not a status, or nil if it has.
func is(mr *resourcesv1alpha1.ManagedResource, typ corev1beta1.ConditionType, want corev1beta1.ConditionStatus) error {
	condition := kube.Condition(mr.Status.Conditions, typ)
	switch {
	case condition == nil:
		return fmt.Errorf("ManagedResource %s/%s: it has no condition %s yet", mr.Namespace, mr.Name, typ)
	case condition.Status != want:
		return fmt.Errorf("ManagedResource %s/%s: %s is %s: %s", mr.Namespace, mr.Name, typ, condition.Status, condition.Message)
	}
	return nil
}
