// Package access issues the credentials of an administrator with which the gardenlet accesses shoots, and gardener-operator and the landscape the
// virtual garden. The gardenlet and gardener-operator keep them in memory only and for a short time: whoever copies the Secrets of a seed, or what they
// have in memory, has nothing that works for long.
package access

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// Validity is for how long credentials are valid: longer than a flow runs, which uses the same to its end.
	Validity = time.Hour
	// RenewAfter is how long credentials are used that are kept.
	RenewAfter = Validity / 2

	user         = "gardener.cloud:gardenlet"
	groupMasters = "system:masters"
)

// Values say for which shoot credentials are.
type Values struct {
	// SeedAPI is the seed, and Namespace that of the control plane, which has the CAs.
	SeedAPI   client.Reader
	Namespace string
	// Host is the name of the kube-apiserver.
	Host string
	// Status is that of the Shoot. It has the phase of the rotation of the CAs.
	Status *corev1beta1.ShootCredentials
	// CAPhase is the phase of this rotation for a cluster that is no shoot. Status is nil then.
	CAPhase corev1beta1.CredentialsRotationPhase
	// User is the name of the user. Empty means that of the gardenlet.
	User string
	// Validity is for how long the credentials are valid. Zero means the constant Validity.
	Validity time.Duration
	// Now is the time.
	Now time.Time
}

// Kubeconfig issues a kubeconfig with all permissions in a shoot.
func Kubeconfig(ctx context.Context, v Values) ([]byte, error) {
	servers, err := v.cas(ctx, constants.SecretNameCACluster)
	if err != nil {
		return nil, err
	}
	signers, err := v.cas(ctx, constants.SecretNameCAClient)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 || len(signers) == 0 {
		return nil, fmt.Errorf("namespace %q has no CAs of the kube-apiserver yet", v.Namespace)
	}
	signer := signers[0]
	if len(signers) > 1 && v.trustsOldOnly() {
		signer = signers[1]
	}
	return secrets.IssueKubeconfig(&secrets.Kubeconfig{
		Name: v.Namespace, Server: "https://" + v.Host, CA: bundle(servers),
		Certificate: &secrets.Certificate{
			CommonName: cmp.Or(v.User, user), Organization: []string{groupMasters}, Usage: secrets.ClientCert, Validity: cmp.Or(v.Validity, Validity),
		},
	}, &signer, v.Now)
}

// CABundle returns the CAs of the server certificates of the kube-apiserver. They are not secret.
func CABundle(ctx context.Context, v Values) ([]byte, error) {
	servers, err := v.cas(ctx, constants.SecretNameCACluster)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("namespace %q has no CAs of the kube-apiserver yet", v.Namespace)
	}
	return bundle(servers), nil
}

// bundle returns the certificates of CAs. The kube-apiserver presents a certificate of either CA while they are rotated.
func bundle(cas []corev1.Secret) []byte {
	certificates := make([][]byte, 0, len(cas))
	for _, ca := range cas {
		certificates = append(certificates, ca.Data[secrets.DataKeyCertificateCA])
	}
	return bytes.Join(certificates, nil)
}

// trustsOldOnly returns whether there may be a kube-apiserver that does not trust the new CA yet. All trust the old one.
func (v Values) trustsOldOnly() bool {
	phase := v.CAPhase
	if v.Status != nil && v.Status.Rotation != nil && v.Status.Rotation.CertificateAuthorities != nil {
		phase = v.Status.Rotation.CertificateAuthorities.Phase
	}
	switch phase {
	case corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout:
		return true
	}
	return false
}

// cas returns the Secrets with a CA of a name, the newest first.
func (v Values) cas(ctx context.Context, name string) ([]corev1.Secret, error) {
	list := &corev1.SecretList{}
	if err := v.SeedAPI.List(ctx, list, client.InNamespace(v.Namespace), client.MatchingLabels{
		secrets.LabelKeyManagedBy: secrets.LabelValueSecretsManager, secrets.LabelKeyName: name,
	}); err != nil {
		return nil, fmt.Errorf("list Secrets with the CA %q: %w", name, err)
	}
	cas := slices.DeleteFunc(list.Items, func(s corev1.Secret) bool {
		return s.Labels[secrets.LabelKeyBundleFor] != "" || s.DeletionTimestamp != nil
	})
	slices.SortFunc(cas, func(a, b corev1.Secret) int { return secrets.IssuedAt(&b).Compare(secrets.IssuedAt(&a)) })
	return cas, nil
}
