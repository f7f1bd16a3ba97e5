// Package usercredential reads credentials in the garden, for infrastructures, DNS and backups, and copies them to where extensions find them
// in the seed.
package usercredential

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
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/errorcode"
)

// The kinds of credentials that references name.
const (
	Secret, InternalSecret, WorkloadIdentity = "Secret", "InternalSecret", "WorkloadIdentity"
)

// Credential is what an extension authenticates with. Labels and annotations of the object in the garden are no part of it: users write
// them, and controllers of the seed act on them.
type Credential struct {
	// Kind is Secret, InternalSecret or WorkloadIdentity. It is that of the reference, as users write the content of the object.
	Kind string
	// Data is the content.
	Data map[string][]byte
	// Labels and Annotations are those by which a token of a WorkloadIdentity is requested. Other kinds have none.
	Labels, Annotations map[string]string
}

// Secret returns the credential as extensions find it in the seed, with some more labels.
func (c Credential) Secret(namespace, name string, labels map[string]string) *corev1.Secret {
	all := maps.Clone(c.Labels)
	if all == nil && len(labels) > 0 {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: all, Annotations: c.Annotations},
		Data:       c.Data, Type: corev1.SecretTypeOpaque,
	}
}

// UserOf returns what the tokens of a WorkloadIdentity are for: an object of core.gardener.cloud that refers to it.
func UserOf(kind string, obj client.Object) securityv1alpha1.ContextObject {
	user := securityv1alpha1.ContextObject{
		Kind: kind, APIVersion: corev1beta1.SchemeGroupVersion.String(), Name: obj.GetName(), UID: obj.GetUID(),
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		user.Namespace = &namespace
	}
	return user
}

// Read reads the credential that a Shoot refers to.
func Read(ctx context.Context, gardenAPI client.Reader, shoot *corev1beta1.Shoot, ref corev1.ObjectReference) (Credential, error) {
	return ReadFor(ctx, gardenAPI, UserOf("Shoot", shoot), ref)
}

// ReadFor reads the credential that another object refers to.
func ReadFor(ctx context.Context, gardenAPI client.Reader, user securityv1alpha1.ContextObject, ref corev1.ObjectReference) (Credential, error) {
	c, key := Credential{Kind: ref.Kind}, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	var err error
	switch ref.Kind {
	case Secret:
		secret := &corev1.Secret{}
		err = gardenAPI.Get(ctx, key, secret)
		c.Data = secret.Data
	case InternalSecret:
		secret := &corev1beta1.InternalSecret{}
		err = gardenAPI.Get(ctx, key, secret)
		c.Data = secret.Data
	case WorkloadIdentity:
		return forIdentity(ctx, gardenAPI, user, key)
	default:
		return c, errorcode.With(fmt.Errorf("credentials of kind %s are not supported", ref.Kind), corev1beta1.ErrorConfigurationProblem)
	}
	if err != nil {
		return c, fmt.Errorf("read %s %q: %w", ref.Kind, key, err)
	}
	return c, nil
}

// forIdentity reads a WorkloadIdentity. Another controller writes a token for its user into the Secret in the seed, and renews it.
func forIdentity(ctx context.Context, gardenAPI client.Reader, user securityv1alpha1.ContextObject, key client.ObjectKey) (Credential, error) {
	c, identity := Credential{Kind: WorkloadIdentity}, &securityv1alpha1.WorkloadIdentity{}
	if err := gardenAPI.Get(ctx, key, identity); err != nil {
		return c, fmt.Errorf("read WorkloadIdentity %q: %w", key, err)
	}
	about, err := json.Marshal(user)
	if err != nil {
		return c, fmt.Errorf("encode context of WorkloadIdentity %q: %w", key, err)
	}
	c.Labels = map[string]string{
		securityv1alpha1.LabelPurpose:                  securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
		securityv1alpha1.LabelWorkloadIdentityProvider: identity.Spec.TargetSystem.Type,
	}
	c.Annotations = map[string]string{
		securityv1alpha1.AnnotationWorkloadIdentityNamespace:     key.Namespace,
		securityv1alpha1.AnnotationWorkloadIdentityName:          key.Name,
		securityv1alpha1.AnnotationWorkloadIdentityContextObject: string(about),
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil {
		c.Data = map[string][]byte{securityv1alpha1.DataKeyConfig: config.Raw}
	}
	return c, nil
}

// Write writes a credential into the seed. The Secret of a WorkloadIdentity has no token yet.
func (c Credential) Write(ctx context.Context, run *stage.Run, name string, labels map[string]string) error {
	return run.Apply(ctx, c.Secret(run.Namespace, name, labels))
}

// AwaitToken waits until the Secret of a WorkloadIdentity has a token. Other credentials are complete when they are written.
func (c Credential) AwaitToken(ctx context.Context, seedAPI client.WithWatch, namespace, name string) error {
	if c.Kind != WorkloadIdentity {
		return nil
	}
	return stage.AwaitOne(ctx, seedAPI, namespace, name, &corev1.SecretList{}, func(secret *corev1.Secret) error {
		if len(secret.Data[securityv1alpha1.DataKeyToken]) == 0 {
			return fmt.Errorf("Secret %q has no token of its WorkloadIdentity yet", name)
		}
		return nil
	})
}
