package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
)

// The kinds of credentials that references name.
const plainSecret, internalSecret, workloadIdentity = "Secret", "InternalSecret", "WorkloadIdentity"

// credential is what an extension acts with, on its way from the garden to the seed. Labels and annotations of the object in the garden are
// no part of it: users write them, and controllers of the seed obey them.
type credential struct {
	// kind is one of plainSecret, internalSecret and workloadIdentity. It is that of the reference: what is in an object, its owner writes.
	kind string
	data map[string][]byte
	// labels and annotations are those by which a token of a WorkloadIdentity is requested. Other kinds have none.
	labels, annotations map[string]string
}

// secret is the credential as extensions find it in the seed.
func (c credential) secret(namespace, name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: merge(maps.Clone(c.labels), labels), Annotations: c.annotations},
		Data:       c.data, Type: corev1.SecretTypeOpaque,
	}
}

// credential reads what a shoot acts with.
func (r *reconciler) credential(ctx context.Context, shoot *corev1beta1.Shoot, ref corev1.ObjectReference) (credential, error) {
	c, key := credential{kind: ref.Kind}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	var err error
	switch ref.Kind {
	case plainSecret:
		secret := &corev1.Secret{}
		err = r.live.Get(ctx, key, secret)
		c.data = secret.Data
	case internalSecret:
		secret := &corev1beta1.InternalSecret{}
		err = r.live.Get(ctx, key, secret)
		c.data = secret.Data
	case workloadIdentity:
		return r.identityOf(ctx, shoot, key)
	default:
		return c, errorcode.With(fmt.Errorf("credentials of kind %s are not supported", ref.Kind), corev1beta1.ErrorConfigurationProblem)
	}
	if err != nil {
		return c, fmt.Errorf("read %s %q: %w", ref.Kind, key, err)
	}
	return c, nil
}

// identityOf reads a WorkloadIdentity and returns what extensions act as it with, for a shoot. Another controller puts a token into the Secret
// in the seed, and renews that.
func (r *reconciler) identityOf(ctx context.Context, shoot *corev1beta1.Shoot, key client.ObjectKey) (credential, error) {
	c, identity := credential{kind: workloadIdentity}, &securityv1alpha1.WorkloadIdentity{}
	if err := r.live.Get(ctx, key, identity); err != nil {
		return c, fmt.Errorf("read WorkloadIdentity %q: %w", key, err)
	}
	about, err := json.Marshal(securityv1alpha1.ContextObject{
		Kind: "Shoot", APIVersion: corev1beta1.SchemeGroupVersion.String(), Namespace: &shoot.Namespace, Name: shoot.Name, UID: shoot.UID,
	})
	if err != nil {
		return c, fmt.Errorf("write context of WorkloadIdentity %q: %w", key, err)
	}
	c.labels = map[string]string{
		securityv1alpha1.LabelPurpose:                  securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
		securityv1alpha1.LabelWorkloadIdentityProvider: identity.Spec.TargetSystem.Type,
	}
	c.annotations = map[string]string{
		securityv1alpha1.AnnotationWorkloadIdentityNamespace:     key.Namespace,
		securityv1alpha1.AnnotationWorkloadIdentityName:          key.Name,
		securityv1alpha1.AnnotationWorkloadIdentityContextObject: string(about),
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil {
		c.data = map[string][]byte{securityv1alpha1.DataKeyConfig: config.Raw}
	}
	return c, nil
}

// copyCredential writes a credential into the seed. That of a WorkloadIdentity is there when it has a token.
func (h *hosted) copyCredential(ctx context.Context, c credential, name string, labels map[string]string) error {
	if err := h.apply(ctx, c.secret(h.namespace, name, labels)); err != nil || c.kind != workloadIdentity {
		return err
	}
	return awaitOne(ctx, h.SeedClient, h.namespace, name, &corev1.SecretList{}, func(secret *corev1.Secret) error {
		if len(secret.Data[securityv1alpha1.DataKeyToken]) == 0 {
			return fmt.Errorf("Secret %q has no token of its WorkloadIdentity yet", name)
		}
		return nil
	})
}
