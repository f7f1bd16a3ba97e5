package registry

import (
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// canonicalShoot writes what is said under the old name of a field under the new one as well, and labels the shoot by what
// selectors ask for.
// Validation has seen by then which of the names the user took.
func canonicalShoot(shoot *corev1beta1.Shoot) {
	spec := &shoot.Spec
	if name := spec.CloudProfileName; get(name) != "" {
		if spec.CloudProfile == nil {
			spec.CloudProfile = &corev1beta1.CloudProfileReference{Name: *name}
		}
		spec.CloudProfileName = new(spec.CloudProfile.Name)
	}
	if spec.CloudProfile != nil && spec.CloudProfile.Kind == "" {
		spec.CloudProfile.Kind = constants.CloudProfileReferenceKindCloudProfile
	}
	if spec.DNS != nil {
		for i := range spec.DNS.Providers {
			provider := &spec.DNS.Providers[i]
			if name := get(provider.SecretName); name != "" && provider.CredentialsRef == nil {
				provider.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: name}
			}
		}
	}
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil {
		autoscaler.MaxEmptyBulkDelete = nil
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil && !get(server.EnableAnonymousAuthentication) {
		server.EnableAnonymousAuthentication = nil
	}

	labelSeeds(&shoot.ObjectMeta, spec.SeedName, shoot.Status.SeedName)
	if slices.ContainsFunc(spec.Provider.Workers, func(w corev1beta1.Worker) bool { return w.ControlPlane != nil }) {
		metav1.SetMetaDataLabel(&shoot.ObjectMeta, constants.ShootIsSelfHosted, "true")
	} else {
		delete(shoot.Labels, constants.ShootIsSelfHosted)
	}
}
