package care

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// constraints returns which operations are not possible now, and what the shoot owner should do. Constraints that cannot be checked now are
// omitted.
func constraints(shoot *corev1beta1.Shoot, o *observed, now time.Time) []corev1beta1.Condition {
	maintenance := webhookConstraint(shoot, o)
	maintenance.Type = corev1beta1.ShootMaintenancePreconditionsSatisfied
	list := []corev1beta1.Condition{maintenance, caCertificateValidity(o, now), ignoredManagedResources(o), manualInPlaceUpdates(shoot)}
	if o.conversionCRDs != nil {
		list = append(list, conversionWebhooks(o))
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		return list
	}
	maintenance.Type = corev1beta1.ShootHibernationPossible
	list = append(list, maintenance)
	// A hibernated shoot has neither machines nor nodes.
	if hibernated(shoot) || o.apiServerError == nil {
		list = append(list, preservedMachines(o))
		if o.nodesError == nil {
			list = append(list, dualStackMigration(shoot, o))
		}
	}
	return list
}

// omittedStatus is the status with which a constraint is not in the status of the Shoot.
var omittedStatus = map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
	corev1beta1.ShootCACertificateValiditiesAcceptable:     corev1beta1.ConditionTrue,
	corev1beta1.ShootCRDsWithProblematicConversionWebhooks: corev1beta1.ConditionTrue,
	corev1beta1.ShootManualInPlaceWorkersUpdated:           corev1beta1.ConditionTrue,
	corev1beta1.ShootPreservedFailedMachinesAbsent:         corev1beta1.ConditionTrue,
	corev1beta1.ShootDualStackNodesMigrationReady:          corev1beta1.ConditionTrue,
	// Here True is the problem.
	corev1beta1.ShootHasIgnoredManagedResources: corev1beta1.ConditionFalse,
}

// mergeConstraints returns the constraints before with the given ones, without those that are omitted.
func mergeConstraints(before, constraints []corev1beta1.Condition, now time.Time) []corev1beta1.Condition {
	after := slices.Clone(before)
	for _, want := range constraints {
		if omittedStatus[want.Type] == want.Status {
			after = slices.DeleteFunc(after, func(c corev1beta1.Condition) bool { return c.Type == want.Type })
		} else {
			after, _ = kube.SetCondition(after, want, now)
		}
	}
	return after
}

// webhookConstraint is whether webhooks may block operations. Its type is set by the caller.
func webhookConstraint(shoot *corev1beta1.Shoot, o *observed) corev1beta1.Condition {
	switch {
	case hibernated(shoot):
		return corev1beta1.Condition{Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: hibernatedMessage}
	case o.apiServerError != nil:
		return corev1beta1.Condition{Status: corev1beta1.ConditionUnknown, Reason: reasonAPIServerDown, Message: "The webhooks are unknown, as the API server does not respond."}
	case o.webhooksError != nil:
		return corev1beta1.Condition{Status: corev1beta1.ConditionUnknown, Reason: "WebhooksUnknown", Message: "The webhooks are unknown, as they cannot be listed."}
	}
	var found []string
	for i := range o.mutating {
		if c := &o.mutating[i]; !managedByGardener(c) && !excluded(c) {
			found = append(found, problems("MutatingWebhookConfiguration", c.Name, mutating(c))...)
		}
	}
	for i := range o.validating {
		if c := &o.validating[i]; !managedByGardener(c) && !excluded(c) {
			found = append(found, problems("ValidatingWebhookConfiguration", c.Name, validating(c))...)
		}
	}
	if len(found) == 0 {
		return corev1beta1.Condition{Status: corev1beta1.ConditionTrue, Reason: "NoProblematicWebhooks", Message: "No webhook blocks operations."}
	}
	slices.Sort(found)
	return corev1beta1.Condition{
		Status: corev1beta1.ConditionFalse, Reason: "ProblematicWebhooks", Message: strings.Join(found, "; "),
		Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorProblematicWebhook},
	}
}

// caCertificateValidity is whether the CA certificates are valid for a year.
func caCertificateValidity(o *observed, now time.Time) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootCACertificateValiditiesAcceptable, Status: corev1beta1.ConditionTrue, Reason: "NoExpiringCACertificates",
		Message: "All CA certificates are valid for at least one year.",
	}
	var expiring []string
	for _, e := range secrets.ExpiringCAs(o.credentials, now) {
		expiring = append(expiring, fmt.Sprintf("%q expires on %s", e.Name, e.Until.Format(time.DateOnly)))
	}
	if len(expiring) > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ExpiringCACertificates"
		condition.Message = "Rotate the CAs of the cluster: " + strings.Join(expiring, ", ")
	}
	return condition
}

// ignoredManagedResources is whether ManagedResources have the annotation that stops their reconciliation, with a value that
// gardener-resource-manager understands.
func ignoredManagedResources(o *observed) corev1beta1.Condition {
	var names []string
	for i := range o.managedResources {
		mr := &o.managedResources[i]
		if ignored, _ := strconv.ParseBool(mr.Annotations[resourcesv1alpha1.Ignore]); ignored { // an invalid value counts as false
			names = append(names, mr.Name)
		}
	}
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootHasIgnoredManagedResources, Status: corev1beta1.ConditionFalse, Reason: "NoIgnoredManagedResources",
		Message: "All ManagedResources are reconciled.",
	}
	if len(names) > 0 {
		slices.Sort(names)
		condition.Status, condition.Reason = corev1beta1.ConditionTrue, "IgnoredManagedResources"
		condition.Message = fmt.Sprintf("ManagedResources are not reconciled, as they have the annotation %s: %s", resourcesv1alpha1.Ignore, strings.Join(names, ", "))
	}
	return condition
}

// manualInPlaceUpdates is whether worker pools wait until the shoot owner selects nodes for their update.
func manualInPlaceUpdates(shoot *corev1beta1.Shoot) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootManualInPlaceWorkersUpdated, Status: corev1beta1.ConditionTrue, Reason: "WorkerPoolsUpdated",
		Message: "All worker pools with manual in-place updates are up to date.",
	}
	if updates := shoot.Status.InPlaceUpdates; updates != nil && updates.PendingWorkerUpdates != nil && len(updates.PendingWorkerUpdates.ManualInPlaceUpdate) > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "WorkerPoolsWithManualInPlaceUpdateStrategyPending"
		condition.Message = fmt.Sprintf("Worker pools wait until their nodes have the label %s: %s", machinev1alpha1.NodeSelectedForUpdate,
			strings.Join(slices.Sorted(slices.Values(updates.PendingWorkerUpdates.ManualInPlaceUpdate)), ", "))
	}
	return condition
}

// conversionWebhooks is whether stored objects cannot be read while a conversion webhook does not respond.
func conversionWebhooks(o *observed) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootCRDsWithProblematicConversionWebhooks, Status: corev1beta1.ConditionTrue, Reason: "NoProblematicConversionWebhooks",
		Message: "No CustomResourceDefinition needs a conversion webhook for its stored objects.",
	}
	if len(o.conversionCRDs) > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ProblematicConversionWebhooks"
		condition.Message = "CustomResourceDefinitions have a conversion webhook, and objects that are stored in several versions. Rewrite the objects in the " +
			"storage version, and remove the others from status.storedVersions: " + strings.Join(o.conversionCRDs, ", ")
	}
	return condition
}

// preservedMachines is whether failed machines are preserved for inspection.
func preservedMachines(o *observed) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootPreservedFailedMachinesAbsent, Status: corev1beta1.ConditionTrue, Reason: "NoPreservedFailedMachines",
		Message: "No failed machine is preserved.",
	}
	var preserved []string
	for i := range o.machineDeployments {
		if n := o.machineDeployments[i].Status.PreservedFailedReplicas; n > 0 {
			preserved = append(preserved, fmt.Sprintf("%d of %q", n, o.machineDeployments[i].Name))
		}
	}
	if len(preserved) > 0 {
		slices.Sort(preserved)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "PreservedFailedMachines"
		condition.Message = "Failed machines are preserved for inspection: " + strings.Join(preserved, ", ")
	}
	return condition
}

// dualStackMigration is whether the nodes of a dual-stack cluster have both IP families. A node gets its pod CIDRs when it joins.
func dualStackMigration(shoot *corev1beta1.Shoot, o *observed) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootDualStackNodesMigrationReady, Status: corev1beta1.ConditionTrue, Reason: "NodesMigrated",
		Message: "All nodes have the IP families of the cluster.",
	}
	if n := shoot.Spec.Networking; n == nil || len(n.IPFamilies) < 2 {
		return condition
	}
	if singleStack := count(o.nodes, kube.SingleStack); singleStack > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "NodesNotMigrated"
		condition.Message = fmt.Sprintf("%d of %d nodes have one IP family only. Replace them with the operation rollout-workers=*, then reconcile the cluster.", singleStack, len(o.nodes))
	}
	return condition
}
