package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/resourcemanager/managedresource"
)

// shownObjects is how many objects a message names. It only has the number of the others.
const shownObjects = 5

// finding is the result of the check of an object.
type finding struct {
	kind string
	name types.NamespacedName
	// missing says that the object does not exist.
	missing bool
	// unhealthy and progressing are why the object is not healthy or not rolled out, or nil.
	unhealthy, progressing error
}

func (f finding) String() string {
	name := f.name.Name
	if f.name.Namespace != "" {
		name = f.name.String()
	}
	return fmt.Sprintf("%s %q", f.kind, name)
}

// ready says whether the objects can be checked: the current manifests are applied, and the ManagedResource is not ignored.
func ready(class string, mr *resourcesv1alpha1.ManagedResource) bool {
	applied := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	return mr.DeletionTimestamp == nil && managedresource.Responsible(class, mr) && !managedresource.Truthy(mr.Annotations[resourcesv1alpha1.Ignore]) &&
		mr.Status.ObservedGeneration == mr.Generation && applied != nil && applied.Status == corev1beta1.ConditionTrue
}

// decide returns the two conditions for all findings.
func decide(findings []finding) []corev1beta1.Condition {
	sorted := slices.SortedFunc(slices.Values(findings), func(a, b finding) int { return cmp.Compare(a.String(), b.String()) })
	healthy := corev1beta1.Condition{
		Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue, Reason: "ResourcesHealthy", Message: "All resources are healthy.",
	}
	progressing := corev1beta1.Condition{
		Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse, Reason: "ResourcesRolledOut",
		Message: "All resources have been fully rolled out.",
	}
	var unhealthy, rolling []string
	for _, f := range sorted {
		switch {
		case f.missing:
			unhealthy = append(unhealthy, fmt.Sprintf("%s is missing", f))
			first(&healthy, len(unhealthy), corev1beta1.ConditionFalse, f.kind+"Missing")
		case f.unhealthy != nil:
			unhealthy = append(unhealthy, fmt.Sprintf("%s is unhealthy: %v", f, f.unhealthy))
			first(&healthy, len(unhealthy), corev1beta1.ConditionFalse, f.kind+"Unhealthy")
		}
		if f.progressing != nil {
			rolling = append(rolling, fmt.Sprintf("%s is progressing: %v", f, f.progressing))
			first(&progressing, len(rolling), corev1beta1.ConditionTrue, f.kind+"Progressing")
		}
	}
	if len(unhealthy) > 0 {
		healthy.Message = message(unhealthy)
	}
	if len(rolling) > 0 {
		progressing.Message = message(rolling)
	}
	return []corev1beta1.Condition{healthy, progressing}
}

// first sets status and reason of a condition for its first finding.
func first(condition *corev1beta1.Condition, count int, status corev1beta1.ConditionStatus, reason string) {
	if count == 1 {
		condition.Status, condition.Reason = status, reason
	}
}

func message(lines []string) string {
	if more := len(lines) - shownObjects; more > 0 {
		lines = append(lines[:shownObjects:shownObjects], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}
