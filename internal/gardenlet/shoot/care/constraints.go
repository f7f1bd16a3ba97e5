package care

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// expirySoon is how long before the end of an authority its owner is told to rotate it.
const expirySoon = 365 * 24 * time.Hour

// constraints say what the owner of a shoot cannot do now, or should do soon. One of which nothing is known now is left out.
func constraints(shoot *corev1beta1.Shoot, seen *observation, now time.Time) []corev1beta1.Condition {
	maintenance := webhookConstraint(shoot, seen)
	maintenance.Type = corev1beta1.ShootMaintenancePreconditionsSatisfied
	list := []corev1beta1.Condition{maintenance, authorities(seen, now), ignoredResources(seen), updatesByHand(shoot)}
	if seen.conversions != nil {
		list = append(list, conversions(seen))
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		return list
	}
	maintenance.Type = corev1beta1.ShootHibernationPossible
	list = append(list, maintenance)
	if !hibernated(shoot) && seen.unavailable == nil {
		list = append(list, preservedMachines(seen))
		if seen.nodesUnknown == nil {
			list = append(list, bothFamilies(shoot, seen))
		}
	}
	return list
}

// unremarkable are constraints that are said only if they have another status than this one.
var unremarkable = map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
	corev1beta1.ShootCACertificateValiditiesAcceptable:     corev1beta1.ConditionTrue,
	corev1beta1.ShootCRDsWithProblematicConversionWebhooks: corev1beta1.ConditionTrue,
	corev1beta1.ShootManualInPlaceWorkersUpdated:           corev1beta1.ConditionTrue,
	corev1beta1.ShootPreservedFailedMachinesAbsent:         corev1beta1.ConditionTrue,
	corev1beta1.ShootDualStackNodesMigrationReady:          corev1beta1.ConditionTrue,
	// Its name says the opposite of what is wanted.
	corev1beta1.ShootHasIgnoredManagedResources: corev1beta1.ConditionFalse,
}

// constrain puts constraints into a list, and takes out of it what is not worth a word.
func constrain(before, wanted []corev1beta1.Condition, now time.Time) []corev1beta1.Condition {
	after := slices.Clone(before)
	for _, want := range wanted {
		if unremarkable[want.Type] == want.Status {
			after = slices.DeleteFunc(after, func(c corev1beta1.Condition) bool { return c.Type == want.Type })
		} else {
			after, _ = kube.SetCondition(after, want, now)
		}
	}
	return after
}

// webhookConstraint says whether webhooks are in the way of operations.
func webhookConstraint(shoot *corev1beta1.Shoot, seen *observation) corev1beta1.Condition {
	switch {
	case hibernated(shoot):
		return corev1beta1.Condition{Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: asleep}
	case seen.unavailable != nil:
		return corev1beta1.Condition{Status: corev1beta1.ConditionUnknown, Reason: "APIServerDown", Message: "Nothing is known of webhooks, as the API server does not answer."}
	case seen.webhooksUnknown != nil:
		return corev1beta1.Condition{Status: corev1beta1.ConditionUnknown, Reason: "WebhooksUnknown", Message: "Nothing is known of webhooks, as they cannot be read."}
	}
	var found []string
	for i := range seen.mutating {
		if c := &seen.mutating[i]; !ours(c) && !vouched(c) {
			found = append(found, problems("MutatingWebhookConfiguration", c.Name, mutating(c))...)
		}
	}
	for i := range seen.validating {
		if c := &seen.validating[i]; !ours(c) && !vouched(c) {
			found = append(found, problems("ValidatingWebhookConfiguration", c.Name, validating(c))...)
		}
	}
	if len(found) == 0 {
		return corev1beta1.Condition{Status: corev1beta1.ConditionTrue, Reason: "NoProblematicWebhooks", Message: "No webhook is in the way."}
	}
	slices.Sort(found)
	return corev1beta1.Condition{
		Status: corev1beta1.ConditionFalse, Reason: "ProblematicWebhooks", Message: strings.Join(found, "; "),
		Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorProblematicWebhook},
	}
}

// asleep is said of a shoot that sleeps.
const asleep = "Shoot cluster has been hibernated."

// authorities says whether the certificates of authorities are good for a year yet.
func authorities(seen *observation, now time.Time) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootCACertificateValiditiesAcceptable, Status: corev1beta1.ConditionTrue, Reason: "NoExpiringCACertificates",
		Message: "All authorities are valid for a year at least.",
	}
	var expiring []string
	for _, secret := range seen.credentials {
		name := secret.Labels[secrets.LabelKeyName]
		until, err := strconv.ParseInt(secret.Labels[secrets.LabelKeyValidUntilTime], 10, 64)
		if err != nil || name != constants.SecretNameCACluster && !strings.HasPrefix(name, constants.SecretNameCACluster+"-") || secret.Labels[secrets.LabelKeyBundleFor] != "" {
			continue
		}
		if end := time.Unix(until, 0).UTC(); end.Sub(now) < expirySoon {
			expiring = append(expiring, fmt.Sprintf("%q expires on %s", name, end.Format(time.DateOnly)))
		}
	}
	if len(expiring) > 0 {
		slices.Sort(expiring)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ExpiringCACertificates"
		condition.Message = "Rotate the authorities of the cluster: " + strings.Join(expiring, ", ")
	}
	return condition
}

// ignoredResources says whether somebody has stopped the care for parts of the cluster.
func ignoredResources(seen *observation) corev1beta1.Condition {
	var names []string
	for i := range seen.resources {
		if mr := &seen.resources[i]; mr.Annotations[resourcesv1alpha1.Ignore] == "true" {
			names = append(names, mr.Name)
		}
	}
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootHasIgnoredManagedResources, Status: corev1beta1.ConditionFalse, Reason: "NoIgnoredManagedResources",
		Message: "All ManagedResources are looked after.",
	}
	if len(names) > 0 {
		slices.Sort(names)
		condition.Status, condition.Reason = corev1beta1.ConditionTrue, "IgnoredManagedResources"
		condition.Message = fmt.Sprintf("ManagedResources are not looked after, as they have the annotation %s: %s", resourcesv1alpha1.Ignore, strings.Join(names, ", "))
	}
	return condition
}

// updatesByHand says whether worker pools wait until their owner lets nodes be updated.
func updatesByHand(shoot *corev1beta1.Shoot) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootManualInPlaceWorkersUpdated, Status: corev1beta1.ConditionTrue, Reason: "WorkerPoolsUpdated",
		Message: "All worker pools that are updated by hand are up to date.",
	}
	if updates := shoot.Status.InPlaceUpdates; updates != nil && updates.PendingWorkerUpdates != nil && len(updates.PendingWorkerUpdates.ManualInPlaceUpdate) > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "WorkerPoolsWait"
		condition.Message = fmt.Sprintf("Worker pools wait until their nodes have the label %s: %s", machinev1alpha1.NodeSelectedForUpdate,
			strings.Join(slices.Sorted(slices.Values(updates.PendingWorkerUpdates.ManualInPlaceUpdate)), ", "))
	}
	return condition
}

// conversions says whether there are kinds whose objects cannot be read while a webhook does not answer.
func conversions(seen *observation) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootCRDsWithProblematicConversionWebhooks, Status: corev1beta1.ConditionTrue, Reason: "NoProblematicConversionWebhooks",
		Message: "No kind needs a webhook to read what is stored.",
	}
	if len(seen.conversions) > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ProblematicConversionWebhooks"
		condition.Message = "CustomResourceDefinitions have a conversion webhook, and objects that are stored in several versions. Write the objects again in the " +
			"stored version, and take the others out of status.storedVersions: " + strings.Join(seen.conversions, ", ")
	}
	return condition
}

// preservedMachines says whether failed machines are kept for somebody to look at.
func preservedMachines(seen *observation) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootPreservedFailedMachinesAbsent, Status: corev1beta1.ConditionTrue, Reason: "NoPreservedFailedMachines",
		Message: "No failed machine is kept.",
	}
	var kept []string
	for i := range seen.machines {
		if n := seen.machines[i].Status.PreservedFailedReplicas; n > 0 {
			kept = append(kept, fmt.Sprintf("%d of %q", n, seen.machines[i].Name))
		}
	}
	if len(kept) > 0 {
		slices.Sort(kept)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "PreservedFailedMachines"
		condition.Message = "Failed machines are kept for inspection: " + strings.Join(kept, ", ")
	}
	return condition
}

// bothFamilies says whether the nodes of a cluster that is to have two IP families have them. A node gets its ranges when it joins.
func bothFamilies(shoot *corev1beta1.Shoot, seen *observation) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootDualStackNodesMigrationReady, Status: corev1beta1.ConditionTrue, Reason: "NodesMigrated",
		Message: "All nodes have the IP families of the cluster.",
	}
	if n := shoot.Spec.Networking; n == nil || len(n.IPFamilies) < 2 {
		return condition
	}
	if old := count(seen.nodes, func(n *corev1.Node) bool { return len(n.Spec.PodCIDRs) == 1 }); old > 0 {
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "NodesNotMigrated"
		condition.Message = fmt.Sprintf("%d of %d nodes have one IP family only. Replace them, and have the cluster reconciled.", old, len(seen.nodes))
	}
	return condition
}
