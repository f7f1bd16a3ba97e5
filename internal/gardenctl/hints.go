package gardenctl

import corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"

// hints say what the owner of a cluster can do about an error, by its code.
var hints = map[corev1beta1.ErrorCode]string{
	corev1beta1.ErrorInfraUnauthenticated: "The infrastructure refuses the credentials. Put valid ones into the Secret behind the shoot's credentials binding; " +
		"the shoot is then retried.",
	corev1beta1.ErrorInfraUnauthorized: "The credentials lack a permission on the infrastructure. Grant the one in the message, then retry.",
	corev1beta1.ErrorInfraQuotaExceeded: "A quota of the infrastructure account is used up. Request a higher quota, delete unused resources, " +
		"or lower the maximum of a worker pool; then retry.",
	corev1beta1.ErrorInfraRateLimitsExceeded: "The infrastructure throttles the account. Requests are retried; if it persists, find out what else uses the account.",
	corev1beta1.ErrorInfraDependencies: "A resource on the infrastructure that does not belong to the shoot blocks the operation. " +
		"Delete the one in the message, then retry.",
	corev1beta1.ErrorRetryableInfraDependencies: "The infrastructure is not ready yet. This is retried automatically.",
	corev1beta1.ErrorInfraResourcesDepleted: "The infrastructure has no machines of this type left in these zones. " +
		"Wait, or choose another machine type or more zones.",
	corev1beta1.ErrorCleanupClusterResources: "Objects in the shoot are not deleted. Check for finalizers, and for webhooks that do not respond, and remove them.",
	corev1beta1.ErrorConfigurationProblem:    "The shoot's spec does not work. Change the fields in the message; a retry does not help.",
	corev1beta1.ErrorRetryableConfigurationProblem: "Something in the shoot blocks the operation, such as a PodDisruptionBudget that allows no disruption. " +
		"Relax it; the operation is retried automatically.",
	corev1beta1.ErrorProblematicWebhook: "A webhook in the shoot blocks requests that the cluster needs. " +
		"Exclude kube-system and nodes from it, set failurePolicy to Ignore, or remove it.",
}

// hint returns what to do about a code. A newer garden may have codes that this program does not have.
func hint(code corev1beta1.ErrorCode) string {
	if text, ok := hints[code]; ok {
		return text
	}
	return "Unknown code; see the message."
}
