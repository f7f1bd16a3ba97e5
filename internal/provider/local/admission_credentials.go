package local

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/destination"
)

// credentialsAdmission checks the credentials that bindings refer to. The garden is asked for them.
type credentialsAdmission struct{ garden client.Reader }

// checkSecret checks a Secret with credentials.
func checkSecret(_ context.Context, secret, _ *corev1.Secret) error {
	if problem := problemOf(secret); problem != "" {
		return field.Invalid(field.NewPath("data").Key(kubeconfigKey), field.OmitValueType{}, problem)
	}
	if nodes, nodesIPv6, two := strings.Cut(string(secret.Data[nodesKey]), ","); nodes != "" || two {
		errs := checkFamily(nodes, false)
		if two {
			errs = append(errs, checkFamily(nodesIPv6, true)...)
		}
		return errs.ToAggregate()
	}
	return nil
}

// problemOf returns what is wrong with the credentials in a Secret, without quoting them, or "".
func problemOf(secret *corev1.Secret) string {
	kubeconfig := secret.Data[kubeconfigKey]
	if len(kubeconfig) == 0 {
		return ""
	}
	if _, err := kube.ConfigOfUser(kubeconfig, destination.Host); err != nil {
		return err.Error()
	}
	return ""
}

// checkBinding checks the Secret that a CredentialsBinding refers to. Credentials of other kinds have no kubeconfig.
func (a *credentialsAdmission) checkBinding(ctx context.Context, binding, _ *securityv1alpha1.CredentialsBinding) error {
	ref := binding.CredentialsRef
	if ref.Kind != "Secret" || ref.APIVersion != corev1.SchemeGroupVersion.String() {
		return nil
	}
	return a.checkReference(ctx, field.NewPath("credentialsRef"), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
}

// checkSecretBinding does so for a SecretBinding.
func (a *credentialsAdmission) checkSecretBinding(ctx context.Context, binding, _ *corev1beta1.SecretBinding) error {
	return a.checkReference(ctx, field.NewPath("secretRef"), client.ObjectKey{Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name})
}

func (a *credentialsAdmission) checkReference(ctx context.Context, path *field.Path, key client.ObjectKey) error {
	secret := &corev1.Secret{}
	if err := a.garden.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil // gardener-apiserver refuses it, unless it is told not to check references
	} else if err != nil {
		return fmt.Errorf("read Secret %q: %w", key, err)
	}
	if problem := problemOf(secret); problem != "" {
		return field.Invalid(path, key.String(), problem)
	}
	return nil
}
