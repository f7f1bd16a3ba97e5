package shootvalidator

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/validation/kubeconfig"
)

// kubeconfigKey is where a Secret for an admission plugin has the kubeconfig.
const kubeconfigKey = "kubeconfig"

// admissionPlugins checks that the kubeconfigs of admission plugins are among the resources of the shoot, exist, and have allowed fields only.
func (p *Plugin) admissionPlugins(ctx context.Context, in *input) field.ErrorList {
	config := in.shoot.Spec.Kubernetes.KubeAPIServer
	if config == nil || in.deleting() {
		return nil
	}
	var errs field.ErrorList
	for i, plugin := range config.AdmissionPlugins {
		if plugin.KubeconfigSecretName == nil {
			continue
		}
		name := *plugin.KubeconfigSecretName
		path := field.NewPath("spec", "kubernetes", "kubeAPIServer", "admissionPlugins").Index(i).Child("kubeconfigSecretName")
		if !slices.ContainsFunc(in.shoot.Spec.Resources, func(r corev1beta1.NamedResourceReference) bool {
			return r.ResourceRef.Kind == "Secret" && r.ResourceRef.Name == name
		}) {
			errs = append(errs, field.Invalid(path, name, "must be among spec.resources"))
			continue
		}
		secret := &corev1.Secret{}
		if err := p.KubeAPI.Get(ctx, client.ObjectKey{Namespace: in.shoot.Namespace, Name: name}, secret); err != nil {
			errs = append(errs, field.Invalid(path, name, "cannot be read: "+err.Error()))
		} else if data, ok := secret.Data[kubeconfigKey]; !ok {
			errs = append(errs, field.Invalid(path, name, "has no data under the key "+kubeconfigKey))
		} else if in.specChanged() {
			errs = append(errs, allowedKubeconfig(name, data, path)...)
		}
	}
	return errs
}

// authorizers checks that the kubeconfigs of authorizers have only what is allowed. That they exist is checked elsewhere.
func (p *Plugin) authorizers(ctx context.Context, in *input) field.ErrorList {
	config := in.shoot.Spec.Kubernetes.KubeAPIServer
	if config == nil || config.StructuredAuthorization == nil || in.deleting() || !in.specChanged() {
		return nil
	}
	var errs field.ErrorList
	for i, reference := range config.StructuredAuthorization.Kubeconfigs {
		path := field.NewPath("spec", "kubernetes", "kubeAPIServer", "structuredAuthorization", "kubeconfigs").Index(i).Child("secretName")
		secret := &corev1.Secret{}
		if err := p.KubeAPI.Get(ctx, client.ObjectKey{Namespace: in.shoot.Namespace, Name: reference.SecretName}, secret); err == nil {
			errs = append(errs, allowedKubeconfig(reference.SecretName, secret.Data[kubeconfigKey], path)...)
		} else if !apierrors.IsNotFound(err) {
			errs = append(errs, field.Invalid(path, reference.SecretName, "cannot be read: "+err.Error()))
		}
	}
	return errs
}

// allowedKubeconfig rejects a kubeconfig that must not reach a kube-apiserver. The gardenlet checks again when it mounts the file. Data that
// is no kubeconfig at all does no harm, and the Secret may be filled later: the gardenlet reports that on the Shoot.
func allowedKubeconfig(name string, data []byte, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, err := range kubeconfig.Validate(data, nil) {
		if err.Type != field.ErrorTypeTypeInvalid {
			errs = append(errs, field.Invalid(path, name, err.Error()))
		}
	}
	return errs
}

// managedIssuer checks whether Gardener can serve the issuer of service account tokens. It cannot be disabled again: tokens would no
// longer be trusted.
func (p *Plugin) managedIssuer(ctx context.Context, in *input) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(constants.AuthenticationIssuer)
	if !issuer.Managed(in.shoot) {
		if issuer.Managed(in.old) {
			return field.ErrorList{field.Forbidden(path, "a managed issuer cannot be removed")}
		}
		return nil
	}
	var errs field.ErrorList
	if config := in.shoot.Spec.Kubernetes.KubeAPIServer; config != nil && config.ServiceAccountConfig != nil &&
		config.ServiceAccountConfig.Issuer != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "kubernetes", "kubeAPIServer", "serviceAccountConfig", "issuer"),
			"excludes a managed issuer"))
	}
	if issuer.Managed(in.old) {
		return errs
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.KubeAPI.List(ctx, secrets, initializer.FromCache, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer,
	}); err != nil {
		return append(errs, field.InternalError(path, err))
	}
	if len(secrets.Items) == 0 {
		errs = append(errs, field.Forbidden(path, "this garden serves no issuers"))
	}
	return errs
}
