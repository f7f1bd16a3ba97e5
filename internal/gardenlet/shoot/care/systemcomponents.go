package care

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// systemComponentProblems are the reasons why SystemComponentsHealthy is False, besides those of ManagedResources and extensions.
func systemComponentProblems(shoot *corev1beta1.Shoot, o *observed) []error {
	if len(shoot.Spec.Provider.Workers) == 0 || o.apiServerError != nil || o.tunnelError == nil {
		return nil
	}
	// The error itself has addresses that differ with each check, and would change the condition each time.
	return []error{errors.New("the API server does not reach nodes: the tunnel between control plane and nodes does not work")}
}

// conditionOfManagedResource is the condition that a ManagedResource counts for: the one in its label, else ControlPlaneHealthy for those
// with a class, which are for the seed, and SystemComponentsHealthy for those without, which are for the shoot.
func conditionOfManagedResource(mr *resourcesv1alpha1.ManagedResource) corev1beta1.ConditionType {
	switch typ := corev1beta1.ConditionType(mr.Labels[constants.CareConditionType]); {
	case typ != "":
		return typ
	case ptr.Deref(mr.Spec.Class, "") != "":
		return corev1beta1.ShootControlPlaneHealthy
	}
	return corev1beta1.ShootSystemComponentsHealthy
}

// managedResourceProblem returns why a ManagedResource is not applied, not healthy or not rolled out in time, or nil.
func managedResourceProblem(mr *resourcesv1alpha1.ManagedResource, progressing time.Duration, now time.Time) error {
	if err := managedresource.Applied(mr); err != nil {
		return err
	}
	if err := managedresource.Healthy(mr); err != nil {
		return err
	}
	c := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if progressing > 0 && c != nil && c.Status == corev1beta1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) > progressing {
		return fmt.Errorf("ManagedResource %s/%s: it is being rolled out for more than %s: %s", mr.Namespace, mr.Name, progressing, c.Message)
	}
	return nil
}
