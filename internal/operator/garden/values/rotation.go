package values

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/internal/stage/credentials"
)

func credentialsRotation(garden *operatorv1alpha1.Garden) credentials.Rotation {
	return credentials.RotationOfGarden(garden.Status.Credentials)
}

// user is the one that gardener-operator is in the virtual cluster.
const user = "gardener.cloud:gardener-operator"

// Access issues a kubeconfig for a run, with all permissions in the virtual cluster.
func (s Source) Access(ctx context.Context, runtimeAPI client.Reader, now time.Time) ([]byte, error) {
	return access.Kubeconfig(ctx, access.Values{
		SeedAPI: runtimeAPI, Namespace: namespace, Host: s.InternalHost(), CAPhase: credentialsRotation(s.Garden).CertificateAuthorities.Phase,
		User: user, Now: now,
	})
}

// ReplacesCAs reports whether this run changes which CAs etcd and its clients trust.
func (s Source) ReplacesCAs() bool {
	phase := credentialsRotation(s.Garden).CertificateAuthorities.Phase
	return phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationCompleting
}

// PreparesServiceAccountKey reports whether this run changes by which key tokens are signed.
func (s Source) PreparesServiceAccountKey() bool {
	return credentialsRotation(s.Garden).ServiceAccountKey.Phase == corev1beta1.RotationPreparing
}

// PreparesWorkloadIdentityKey reports whether this run changes by which key tokens of workload identities are signed.
func (s Source) PreparesWorkloadIdentityKey() bool {
	return credentialsRotation(s.Garden).WorkloadIdentityKey.Phase == corev1beta1.RotationPreparing
}
