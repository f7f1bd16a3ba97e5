package care

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// The control plane of the virtual garden.
var (
	requiredDeployments = []string{
		operatorv1alpha1.VirtualGardenNamePrefix + "gardener-resource-manager", operatorv1alpha1.VirtualGardenNamePrefix + "kube-apiserver",
		operatorv1alpha1.VirtualGardenNamePrefix + "kube-controller-manager",
	}
	requiredEtcds = []string{operatorv1alpha1.VirtualGardenNamePrefix + "etcd-main", operatorv1alpha1.VirtualGardenNamePrefix + "etcd-events"}
)

// Reasons of conditions that are False, besides those of ManagedResources.
const (
	reasonAPIServerDown       = "VirtualGardenAPIServerDown"
	reasonDeploymentMissing   = "DeploymentMissing"
	reasonDeploymentUnhealthy = "DeploymentUnhealthy"
	reasonEtcdMissing         = "EtcdMissing"
	reasonEtcdUnhealthy       = "EtcdUnhealthy"
	// Of components of the runtime cluster that are deployed without a ManagedResource.
	reasonComponentUnhealthy = "RuntimeComponentUnhealthy"
	// Of ManagedResources without a condition that says why.
	reasonMissingCondition = "MissingManagedResourceCondition"
	reasonOutdated         = "OutdatedManagedResource"
)

// healthyText are reason and message of conditions that are True.
var healthyText = map[corev1beta1.ConditionType]struct{ reason, message string }{
	operatorv1alpha1.VirtualGardenAPIServerAvailable: {"HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code."},
	operatorv1alpha1.RuntimeComponentsHealthy:        {"RuntimeComponentsRunning", "All runtime components are healthy."},
	operatorv1alpha1.VirtualComponentsHealthy:        {"VirtualComponentsRunning", "All virtual garden components are healthy."},
	operatorv1alpha1.ObservabilityComponentsHealthy:  {"ObservabilityComponentsRunning", "All observability components are healthy."},
}

// conditionTypes are the conditions of a Garden, in their order in the status.
var conditionTypes = []corev1beta1.ConditionType{
	operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
	operatorv1alpha1.ObservabilityComponentsHealthy,
}

// problem is a reason why a condition is False.
type problem struct{ reason, message string }

// decide returns the conditions of the Garden.
func decide(o *observed) []corev1beta1.Condition {
	problems := map[corev1beta1.ConditionType][]problem{}
	if o.apiServerError != nil {
		problems[operatorv1alpha1.VirtualGardenAPIServerAvailable] = []problem{{reasonAPIServerDown, o.apiServerError.Error()}}
	}
	problems[operatorv1alpha1.VirtualComponentsHealthy] = controlPlaneProblems(o)
	for _, message := range o.componentProblems {
		problems[operatorv1alpha1.RuntimeComponentsHealthy] = append(problems[operatorv1alpha1.RuntimeComponentsHealthy], problem{reasonComponentUnhealthy, message})
	}
	for i := range o.managedResources {
		mr := &o.managedResources[i]
		if p := managedResourceProblem(mr); p != nil {
			typ := conditionOf(mr)
			problems[typ] = append(problems[typ], *p)
		}
	}
	conditions := make([]corev1beta1.Condition, 0, len(conditionTypes))
	for _, typ := range conditionTypes {
		conditions = append(conditions, newCondition(typ, problems[typ]))
	}
	return conditions
}

// newCondition returns a condition with all problems. Its reason is that of the first one in the message.
func newCondition(typ corev1beta1.ConditionType, problems []problem) corev1beta1.Condition {
	if len(problems) == 0 {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: healthyText[typ].reason, Message: healthyText[typ].message}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.message, b.message), cmp.Compare(a.reason, b.reason))
	})
	messages := make([]string, 0, len(problems))
	for _, p := range problems {
		messages = append(messages, p.message)
	}
	return corev1beta1.Condition{
		Type: typ, Status: corev1beta1.ConditionFalse, Reason: problems[0].reason, Message: strings.Join(slices.Compact(messages), "; "),
	}
}

// postpone turns a condition that would turn False to Progressing while an operation is in progress, and for the threshold after it has succeeded: it replaces
// components one by one. An operation may last, such as a rotation that waits for gardenlets, and the API server has to be available all the time. It returns when
// to check again; zero means that only a change can change the condition.
func postpone(last *corev1beta1.LastOperation, before, desired *corev1beta1.Condition, threshold time.Duration, now time.Time) time.Duration {
	if last == nil || desired.Status != corev1beta1.ConditionFalse || desired.Type == operatorv1alpha1.VirtualGardenAPIServerAvailable ||
		before != nil && before.Status == corev1beta1.ConditionFalse {
		return 0
	}
	if last.State == corev1beta1.LastOperationStateProcessing {
		desired.Status = corev1beta1.ConditionProgressing
		return 0
	}
	left := last.LastUpdateTime.Add(threshold).Sub(now)
	if last.State != corev1beta1.LastOperationStateSucceeded || left <= 0 {
		return 0
	}
	desired.Status = corev1beta1.ConditionProgressing
	return left
}

// controlPlaneProblems are those of the control plane of the virtual garden, which is deployed without ManagedResources.
func controlPlaneProblems(o *observed) []problem {
	var problems []problem
	for _, name := range requiredDeployments {
		index := slices.IndexFunc(o.deployments, func(d appsv1.Deployment) bool { return d.Name == name })
		if index < 0 {
			problems = append(problems, problem{reasonDeploymentMissing, fmt.Sprintf("Deployment %q not found", name)})
		} else if err := kube.DeploymentAvailable(&o.deployments[index]); err != nil {
			problems = append(problems, problem{reasonDeploymentUnhealthy, err.Error()})
		}
	}
	for _, name := range requiredEtcds {
		index := slices.IndexFunc(o.etcds, func(e druidv1alpha1.Etcd) bool { return e.Name == name })
		if index < 0 {
			problems = append(problems, problem{reasonEtcdMissing, fmt.Sprintf("Etcd %q not found", name)})
		} else if err := etcd.Healthy(&o.etcds[index]); err != nil {
			problems = append(problems, problem{reasonEtcdUnhealthy, err.Error()})
		}
	}
	return problems
}

// conditionOf is the condition that a ManagedResource counts for: the one in its label, else RuntimeComponentsHealthy for those with a class, which
// are for the runtime cluster, and VirtualComponentsHealthy for those without.
func conditionOf(mr *resourcesv1alpha1.ManagedResource) corev1beta1.ConditionType {
	switch typ := corev1beta1.ConditionType(mr.Labels[constants.CareConditionType]); {
	case typ != "":
		return typ
	case ptr.Deref(mr.Spec.Class, "") != "":
		return operatorv1alpha1.RuntimeComponentsHealthy
	}
	return operatorv1alpha1.VirtualComponentsHealthy
}

// managedResourceProblem returns why a ManagedResource is not applied, not healthy or not rolled out, or nil. The reason is that of its condition.
func managedResourceProblem(mr *resourcesv1alpha1.ManagedResource) *problem {
	for _, check := range []struct {
		typ   corev1beta1.ConditionType
		check func(*resourcesv1alpha1.ManagedResource) error
	}{
		{resourcesv1alpha1.ResourcesApplied, managedresource.Applied},
		{resourcesv1alpha1.ResourcesHealthy, managedresource.Healthy},
		{resourcesv1alpha1.ResourcesProgressing, managedresource.RolledOut},
	} {
		err := check.check(mr)
		if err == nil {
			continue
		}
		p := &problem{reasonMissingCondition, err.Error()}
		if mr.Status.ObservedGeneration < mr.Generation {
			p.reason = reasonOutdated
		} else if c := kube.Condition(mr.Status.Conditions, check.typ); c != nil {
			p.reason = cmp.Or(c.Reason, string(check.typ))
		}
		return p
	}
	return nil
}
