package gardenlet

import (
	"strings"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
	"gardener.cloud/gardener/internal/kube"
)

// selfHostedPrefix begins the names of Gardenlets of self-hosted shoots, which gardenadm deploys.
const selfHostedPrefix = "self-hosted-shoot-"

// verdict is what is to be done for a Gardenlet.
type verdict struct {
	// Deploy says whether to deploy it.
	Deploy bool
	// Again is when to deploy it the next time if nothing changes. Zero means never.
	Again time.Duration
	// Finish says whether it then has a Seed, so that its kubeconfig is not needed any more.
	Finish bool
	// Refuse says that it would be deployed, but that no operator has approved it.
	Refuse bool
}

// decide returns what is to be done for a Gardenlet, whose Seed may be nil.
func decide(gardenlet *seedmanagementv1alpha1.Gardenlet, seed *corev1beta1.Seed) verdict {
	if !ofSeed(gardenlet) {
		return verdict{}
	}
	v := requested(gardenlet, seed)
	if _, unapproved := gardenlet.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet]; unapproved && v.Deploy {
		return verdict{Refuse: true}
	}
	return v
}

// ofSeed says whether a Gardenlet is one that the operator deploys.
func ofSeed(gardenlet *seedmanagementv1alpha1.Gardenlet) bool {
	return gardenlet.Namespace == constants.GardenNamespace && !strings.HasPrefix(gardenlet.Name, selfHostedPrefix) && gardenlet.DeletionTimestamp == nil
}

// requested returns what a Gardenlet requests.
func requested(gardenlet *seedmanagementv1alpha1.Gardenlet, seed *corev1beta1.Seed) verdict {
	if seed == nil {
		return verdict{Deploy: true, Again: bootstrap.RenewalPeriod}
	}
	registered := kube.Condition(gardenlet.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered)
	waited := registered != nil && registered.Status == corev1beta1.ConditionProgressing
	forced := gardenlet.Annotations[constants.GardenerOperation] == constants.OperationForceRedeploy
	return verdict{
		// The one that was waited for has just been deployed.
		Deploy: forced || gardenlet.Spec.KubeconfigSecretRef != nil && !waited,
		Finish: forced || gardenlet.Spec.KubeconfigSecretRef != nil || registered != nil && registered.Status != corev1beta1.ConditionTrue,
	}
}
