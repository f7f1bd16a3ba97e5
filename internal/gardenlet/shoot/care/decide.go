package care

import (
	"slices"
	"strings"
	"time"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
)

// thresholds are how long something may go on until it counts as a problem. Zero is forever.
type thresholds struct {
	// staleHeartbeat is for extension controllers that do not renew their heartbeat Lease.
	staleHeartbeat time.Duration
	// progressing is for ManagedResources that are being rolled out.
	progressing time.Duration
}

func newThresholds(c gardenletconfigv1alpha1.ShootCareControllerConfiguration) thresholds {
	t := thresholds{}
	if s := c.StaleExtensionHealthChecks; s != nil && s.Enabled && s.Threshold != nil {
		t.staleHeartbeat = s.Threshold.Duration
	}
	if p := c.ManagedResourceProgressingThreshold; p != nil {
		t.progressing = p.Duration
	}
	return t
}

// hibernatedMessage is the message of conditions and constraints that are not checked while a shoot is hibernated.
const hibernatedMessage = "Shoot cluster has been hibernated."

// hibernated is whether a shoot has been hibernated, and its wake-up has not begun.
func hibernated(shoot *corev1beta1.Shoot) bool {
	state := operationState(shoot)
	waits := shoot.Generation != shoot.Status.ObservedGeneration && (state == corev1beta1.LastOperationStateSucceeded || state == corev1beta1.LastOperationStatePending)
	return shoot.Status.Hibernated && (shoot.HibernationWanted() || waits)
}

// finding is a reason why a condition is not True.
type finding struct {
	// status is what the condition becomes by it.
	status  corev1beta1.ConditionStatus
	message string
	codes   []corev1beta1.ErrorCode
}

// findings are those of all conditions.
type findings map[corev1beta1.ConditionType][]finding

// add adds those errors that are not nil to the findings of a condition, which becomes False.
func (f findings) add(typ corev1beta1.ConditionType, errs ...error) {
	for _, err := range errs {
		if err != nil {
			f[typ] = append(f[typ], finding{status: corev1beta1.ConditionFalse, message: err.Error()})
		}
	}
}

// conditionTypes are the conditions of a Shoot.
func conditionTypes(shoot *corev1beta1.Shoot) []corev1beta1.ConditionType {
	list := []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
		corev1beta1.ShootSystemComponentsHealthy,
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		list = append(list, corev1beta1.ShootEveryNodeReady)
	}
	return list
}

// decide returns the conditions of a Shoot.
func decide(shoot *corev1beta1.Shoot, o *observed, t thresholds, now time.Time) []corev1beta1.Condition {
	if hibernated(shoot) {
		var list []corev1beta1.Condition
		for _, typ := range conditionTypes(shoot) {
			list = append(list, corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: hibernatedMessage})
		}
		return list
	}
	f := findings{}
	f.add(corev1beta1.ShootAPIServerAvailable, o.apiServerError)
	f.add(corev1beta1.ShootControlPlaneHealthy, controlPlaneProblems(shoot, o, now)...)
	f.add(corev1beta1.ShootObservabilityComponentsHealthy, observabilityProblems(o)...)
	f.add(corev1beta1.ShootSystemComponentsHealthy, systemComponentProblems(shoot, o)...)
	if len(shoot.Spec.Provider.Workers) > 0 && o.apiServerError == nil {
		f.add(corev1beta1.ShootEveryNodeReady, nodeProblems(shoot, o, now)...)
	}
	for i := range o.managedResources {
		mr := &o.managedResources[i]
		f.add(conditionOfManagedResource(mr), managedResourceProblem(mr, t.progressing, now))
	}
	for _, c := range o.extensionConditions {
		if found := c.finding(t.staleHeartbeat, now); found != nil {
			f[c.condition.Type] = append(f[c.condition.Type], *found)
		}
	}
	conditions := make([]corev1beta1.Condition, 0, len(conditionTypes(shoot)))
	for _, typ := range conditionTypes(shoot) {
		condition := newCondition(typ, f[typ], o)
		if scaledDown := scaledDown(o); typ == corev1beta1.ShootControlPlaneHealthy && len(scaledDown) > 0 {
			message := "The dependency-watchdog has scaled down controllers, as most nodes do not renew their Leases: " + strings.Join(scaledDown, ", ") + "."
			if condition.Status != corev1beta1.ConditionTrue {
				message += " " + condition.Message
			}
			condition.Status, condition.Reason, condition.Message = corev1beta1.ConditionFalse, "ControllersScaledDown", message
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

// scaledDown are the names of the Deployments that the dependency-watchdog has scaled down.
func scaledDown(o *observed) []string {
	var names []string
	for _, d := range o.deployments {
		if _, ok := d.Annotations[constants.DependencyWatchdogMeltdownProtectionActive]; ok && slices.Contains(dependencywatchdog.Scaled(), d.Name) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}

// healthyText are reason and message of conditions that are True.
var healthyText = map[corev1beta1.ConditionType]struct{ reason, message string }{
	corev1beta1.ShootAPIServerAvailable:             {"HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code."},
	corev1beta1.ShootControlPlaneHealthy:            {"ControlPlaneRunning", "All control plane components are healthy."},
	corev1beta1.ShootObservabilityComponentsHealthy: {"ObservabilityComponentsRunning", "All observability components are healthy."},
	corev1beta1.ShootSystemComponentsHealthy:        {"SystemComponentsRunning", "All system components are healthy."},
	corev1beta1.ShootEveryNodeReady:                 {"EveryNodeReady", "All nodes are ready."},
}

// reasonAPIServerDown is the reason of conditions and constraints that are Unknown without the API server of the shoot.
const reasonAPIServerDown = "APIServerDown"

// unhealthyReason is the reason of conditions that are not True.
var unhealthyReason = map[corev1beta1.ConditionType]string{
	corev1beta1.ShootAPIServerAvailable: "HealthzRequestFailed", corev1beta1.ShootControlPlaneHealthy: "ControlPlaneUnhealthy",
	corev1beta1.ShootObservabilityComponentsHealthy: "ObservabilityComponentsUnhealthy",
	corev1beta1.ShootSystemComponentsHealthy:        "SystemComponentsUnhealthy", corev1beta1.ShootEveryNodeReady: "NodesUnhealthy",
}

// severity orders the status of findings: the last one wins.
var severity = []corev1beta1.ConditionStatus{corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown, corev1beta1.ConditionFalse}

// newCondition returns a condition with all that was found.
func newCondition(typ corev1beta1.ConditionType, found []finding, o *observed) corev1beta1.Condition {
	if typ == corev1beta1.ShootEveryNodeReady && o.apiServerError != nil {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionUnknown, Reason: reasonAPIServerDown, Message: "The state of nodes is unknown, as the API server does not respond."}
	}
	// While the API server is down, the status of ManagedResources is outdated, so that True becomes Unknown. False stays, with its message.
	if typ == corev1beta1.ShootSystemComponentsHealthy && o.apiServerError != nil &&
		!slices.ContainsFunc(found, func(f finding) bool { return f.status == corev1beta1.ConditionFalse }) {
		return corev1beta1.Condition{
			Type: typ, Status: corev1beta1.ConditionUnknown, Reason: reasonAPIServerDown,
			Message: "The state of system components is unknown, as the API server does not respond.",
		}
	}
	if len(found) == 0 {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: healthyText[typ].reason, Message: healthyText[typ].message}
	}
	c, messages := corev1beta1.Condition{Type: typ, Reason: unhealthyReason[typ]}, make([]string, 0, len(found))
	for _, f := range found {
		messages, c.Codes = append(messages, f.message), append(c.Codes, f.codes...)
		if c.Status == "" || slices.Index(severity, f.status) > slices.Index(severity, c.Status) {
			c.Status = f.status
		}
	}
	if c.Status == corev1beta1.ConditionUnknown {
		c.Reason = "OutdatedHealthCheckReport"
	}
	slices.Sort(messages)
	slices.Sort(c.Codes)
	c.Message, c.Codes = strings.Join(slices.Compact(messages), "; "), slices.Compact(c.Codes)
	return c
}

// withThreshold returns Progressing instead of False if the condition was True within the threshold.
func withThreshold(before *corev1beta1.Condition, want corev1beta1.Condition, threshold time.Duration, now time.Time) corev1beta1.Condition {
	if want.Status != corev1beta1.ConditionFalse || threshold == 0 || before == nil {
		return want
	}
	switch before.Status {
	case corev1beta1.ConditionTrue:
		want.Status = corev1beta1.ConditionProgressing
	case corev1beta1.ConditionProgressing:
		if now.Sub(before.LastTransitionTime.Time) <= threshold {
			want.Status = corev1beta1.ConditionProgressing
		}
	case corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown:
	}
	return want
}

// duringOperation returns Progressing instead of False, and instead of Unknown for want of an API server, while an operation without errors starts or stops
// the control plane: it is created, moved to another seed, hibernated or woken up.
func duringOperation(shoot *corev1beta1.Shoot, want corev1beta1.Condition) corev1beta1.Condition {
	last := shoot.Status.LastOperation
	missing := want.Status == corev1beta1.ConditionFalse || want.Status == corev1beta1.ConditionUnknown && want.Reason == reasonAPIServerDown
	if !missing || last == nil || len(shoot.Status.LastErrors) > 0 {
		return want
	}
	creates := last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore
	moves := last.Type == corev1beta1.LastOperationTypeMigrate
	expected := false
	switch last.State {
	case corev1beta1.LastOperationStateProcessing:
		expected = creates || moves || shoot.HibernationWanted() != shoot.Status.Hibernated
	case corev1beta1.LastOperationStatePending:
		expected = creates
	case corev1beta1.LastOperationStateSucceeded:
		expected = moves // the gardenlet of the other seed has not begun yet
	case corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateFailed, corev1beta1.LastOperationStateAborted:
	}
	if expected {
		want.Status = corev1beta1.ConditionProgressing
	}
	return want
}
