package registry

import (
	"fmt"
	"slices"
	"time"

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

// rotationWarnings name the credentials of a shoot that were not renewed for a long time.
func rotationWarnings(shoot *corev1beta1.Shoot, settings Settings) []string {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	rotation := get(get(shoot.Status.Credentials).Rotation)
	var out []string
	check := func(credentials, operation string, begun *metav1.Time) {
		if begun == nil {
			begun = &shoot.CreationTimestamp
		}
		if age := settings.Clock.Now().Sub(begun.Time); age > settings.RotationInterval {
			out = append(out, fmt.Sprintf("the %s of this cluster should be renewed, which was not done for %d days: annotate the Shoot with %s=%s",
				credentials, int(age/(24*time.Hour)), constants.GardenerOperation, operation))
		}
	}
	check("certificate authorities", constants.OperationRotateCAStart, get(rotation.CertificateAuthorities).LastInitiationTime)
	check("key that encrypts etcd", constants.OperationRotateETCDEncryptionKey, get(rotation.ETCDEncryptionKey).LastInitiationTime)
	check("service account key", constants.OperationRotateServiceAccountKeyStart, get(rotation.ServiceAccountKey).LastInitiationTime)
	check("observability passwords", constants.OperationRotateObservabilityCredentials, get(rotation.Observability).LastInitiationTime)
	if shoot.Spec.Provider.SSHAccessEnabled() {
		check("SSH key of the nodes", constants.OperationRotateSSHKeypair, get(rotation.SSHKeypair).LastInitiationTime)
	}
	return out
}
