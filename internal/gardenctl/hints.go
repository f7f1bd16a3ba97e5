package gardenctl

import corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"

// hints say what the owner of a cluster can do about an error, by its code.
var hints = map[corev1beta1.ErrorCode]string{
	corev1beta1.ErrorInfraUnauthenticated: "The infrastructure refuses the credentials. Put valid ones into the Secret behind the shoot's credentials binding; " +
		"the shoot is then tried again.",
	corev1beta1.ErrorInfraUnauthorized: "The credentials lack a permission on the infrastructure. Grant what the message names, then retry.",
	corev1beta1.ErrorInfraQuotaExceeded: "A quota of the infrastructure account is used up. Ask the infrastructure for more, free something, " +
		"or lower the maximum of a worker pool; then retry.",
	corev1beta1.ErrorInfraRateLimitsExceeded: "The infrastructure throttles the account. It passes by itself; if it stays, find out what else uses the account.",
	corev1beta1.ErrorInfraDependencies: "Something on the infrastructure that does not belong to the shoot stands in the way. " +
		"Remove what the message names, then retry.",
	corev1beta1.ErrorRetryableInfraDependencies: "The infrastructure is not ready yet. It is tried again by itself.",
	corev1beta1.ErrorInfraResourcesDepleted: "The infrastructure has no machines of this type left in these zones. " +
		"Wait, or choose another machine type or more zones.",
	corev1beta1.ErrorCleanupClusterResources: "Objects in the shoot do not go away. Look there for finalizers, and for webhooks that do not answer, and remove them.",
	corev1beta1.ErrorConfigurationProblem:    "The shoot cannot work as it is ordered. Change in its spec what the message names; trying again does not help.",
	corev1beta1.ErrorRetryableConfigurationProblem: "Something in the shoot blocks for now, such as a PodDisruptionBudget that allows nothing. " +
		"Loosen it; it is tried again by itself.",
	corev1beta1.ErrorProblematicWebhook: "A webhook in the shoot blocks what the cluster needs to live. " +
		"Exclude kube-system and nodes from it, set failurePolicy to Ignore, or remove it.",
}

// hint returns what to do about a code. There are codes that this program is too old for.
func hint(code corev1beta1.ErrorCode) string {
	if text, ok := hints[code]; ok {
		return text
	}
	return "Nothing is known about this code; the message says more."
}
