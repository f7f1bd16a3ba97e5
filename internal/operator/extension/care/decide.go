package care

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
	"gardener.cloud/gardener/pkg/managedresource"
)

// decide returns the conditions of the parts that an Extension has, and those that it does not have.
func decide(
	e *operatorv1alpha1.Extension, managedResources []resourcesv1alpha1.ManagedResource, installations []corev1beta1.ControllerInstallation,
) extension.Status {
	var status extension.Status
	add := func(typ corev1beta1.ConditionType, applies bool, problems []string, what, reason string) {
		if !applies {
			status.Without = append(status.Without, typ)
			return
		}
		condition := corev1beta1.Condition{
			Type: typ, Status: corev1beta1.ConditionTrue, Reason: reason + "Running", Message: "All " + what + " are healthy.",
		}
		if len(problems) > 0 {
			slices.Sort(problems)
			condition.Status, condition.Reason, condition.Message = corev1beta1.ConditionFalse, reason+"NotHealthy", strings.Join(problems, "; ")
		}
		status.Conditions = append(status.Conditions, condition)
	}
	add(operatorv1alpha1.ExtensionControllerInstallationsHealthy, extension.Registered(e),
		append(problems(e, managedResources, extension.RegistrationManagedResource(e.Name)), installationProblems(e.Name, installations)...),
		"ControllerInstallations of the extension", "ControllerInstallations")
	add(operatorv1alpha1.ExtensionRuntimeHealthy, extension.Chart(e) != nil && required(e),
		problems(e, managedResources, extension.RuntimeManagedResource(e.Name)),
		"objects of the extension in the runtime cluster", "RuntimeComponents")
	var admission []string
	if extension.AdmissionVirtualChart(e) != nil {
		admission = append(admission, extension.AdmissionVirtualManagedResource(e.Name))
	}
	if extension.AdmissionRuntimeChart(e) != nil {
		admission = append(admission, extension.AdmissionRuntimeManagedResource(e.Name))
	}
	add(operatorv1alpha1.ExtensionAdmissionHealthy, len(admission) > 0, problems(e, managedResources, admission...),
		"objects of the admission controller", "AdmissionComponents")
	return status
}

// withoutInstallations returns a status for which ControllerInstallations could not be read: whether they are healthy is not known, unless the registration is not.
func withoutInstallations(status extension.Status) extension.Status {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == operatorv1alpha1.ExtensionControllerInstallationsHealthy && c.Status == corev1beta1.ConditionTrue {
			c.Status, c.Reason, c.Message = corev1beta1.ConditionUnknown, "VirtualGardenUnavailable", "ControllerInstallations cannot be read, as the virtual garden does not respond."
		}
	}
	return status
}

// problems returns why ManagedResources are not healthy.
func problems(e *operatorv1alpha1.Extension, managedResources []resourcesv1alpha1.ManagedResource, names ...string) []string {
	var problems []string
	for _, name := range names {
		i := slices.IndexFunc(managedResources, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Name == name })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("ManagedResource %q: not found", name))
			continue
		}
		mr := withoutValues(e, &managedResources[i])
		for _, check := range []func(*resourcesv1alpha1.ManagedResource) error{managedresource.Applied, managedresource.Healthy, managedresource.RolledOut} {
			if err := check(mr); err != nil {
				problems = append(problems, err.Error())
				break
			}
		}
	}
	return problems
}

// withoutValues withholds what API servers say about objects with data of Secrets: they quote fields that they refuse.
func withoutValues(e *operatorv1alpha1.Extension, mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.ManagedResource {
	if !chart.UsesSecrets(extension.Resources(e)) {
		return mr
	}
	mr = mr.DeepCopy()
	if applied := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); applied != nil {
		applied.Message = chart.Withheld
	}
	return mr
}

// installationProblems returns why ControllerInstallations of the Extension of a name are not healthy.
func installationProblems(name string, installations []corev1beta1.ControllerInstallation) []string {
	var problems []string
	for i := range installations {
		installation := &installations[i]
		if installation.Spec.RegistrationRef.Name != name || installation.DeletionTimestamp != nil {
			continue
		}
		for _, want := range []struct {
			typ    corev1beta1.ConditionType
			status corev1beta1.ConditionStatus
		}{
			{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue},
			{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse},
		} {
			condition, text := kube.Condition(installation.Status.Conditions, want.typ), ""
			switch {
			case condition == nil:
				text = fmt.Sprintf("condition %s is not reported yet", want.typ)
			case condition.Status != want.status:
				text = fmt.Sprintf("condition %s is %s: %s", condition.Type, condition.Status, condition.Message)
			default:
				continue
			}
			problems = append(problems, fmt.Sprintf("ControllerInstallation %q: %s", installation.Name, text))
			break
		}
	}
	return problems
}
