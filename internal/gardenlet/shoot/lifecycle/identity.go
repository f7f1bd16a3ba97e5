package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// workloadIdentity is a kind of credentials.
const workloadIdentity = "WorkloadIdentity"

// identitySecret reads a WorkloadIdentity and returns the Secret by which extensions act as it for a shoot. Another controller puts a token
// into it, and renews that.
func (r *reconciler) identitySecret(ctx context.Context, shoot *corev1beta1.Shoot, key client.ObjectKey) (*corev1.Secret, error) {
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := r.live.Get(ctx, key, identity); err != nil {
		return nil, fmt.Errorf("read WorkloadIdentity %q: %w", key, err)
	}
	about, err := json.Marshal(securityv1alpha1.ContextObject{
		Kind: "Shoot", APIVersion: corev1beta1.SchemeGroupVersion.String(), Namespace: &shoot.Namespace, Name: shoot.Name, UID: shoot.UID,
	})
	if err != nil {
		return nil, fmt.Errorf("write context of WorkloadIdentity %q: %w", key, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				securityv1alpha1.LabelPurpose:                  securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
				securityv1alpha1.LabelWorkloadIdentityProvider: identity.Spec.TargetSystem.Type,
			},
			Annotations: map[string]string{
				securityv1alpha1.AnnotationWorkloadIdentityNamespace:     key.Namespace,
				securityv1alpha1.AnnotationWorkloadIdentityName:          key.Name,
				securityv1alpha1.AnnotationWorkloadIdentityContextObject: string(about),
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil {
		secret.Data = map[string][]byte{securityv1alpha1.DataKeyConfig: config.Raw}
	}
	return secret, nil
}

// isIdentity is whether a Secret has a token of a WorkloadIdentity in place of credentials.
func isIdentity(secret *corev1.Secret) bool {
	return secret.Labels[securityv1alpha1.LabelPurpose] == securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor
}

// awaitToken waits until a Secret of a WorkloadIdentity has a token.
func (h *hosted) awaitToken(ctx context.Context, name string) error {
	return awaitOne(ctx, h.SeedClient, h.namespace, name, &corev1.SecretList{}, func(secret *corev1.Secret) error {
		if len(secret.Data[securityv1alpha1.DataKeyToken]) == 0 {
			return fmt.Errorf("Secret %q has no token of its WorkloadIdentity yet", name)
		}
		return nil
	})
}
