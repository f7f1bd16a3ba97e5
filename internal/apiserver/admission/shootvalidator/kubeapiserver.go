package shootvalidator

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// kubeconfigKey is where a Secret for an admission plugin has the kubeconfig.
const kubeconfigKey = "kubeconfig"

// admissionPlugins checks that the kubeconfigs of admission plugins are among the resources of the shoot, and exist.
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
		} else if _, ok := secret.Data[kubeconfigKey]; !ok {
			errs = append(errs, field.Invalid(path, name, "has no data under the key "+kubeconfigKey))
		}
	}
	return errs
}

// managedIssuer checks whether Gardener can serve the issuer of service account tokens. It cannot be disabled again: tokens would no
// longer be trusted.
func (p *Plugin) managedIssuer(ctx context.Context, in *input) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(constants.AuthenticationIssuer)
	managed := func(shoot *corev1beta1.Shoot) bool {
		return shoot.Annotations[constants.AuthenticationIssuer] == constants.AuthenticationIssuerManaged
	}
	if !managed(in.shoot) {
		if managed(in.old) {
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
	if managed(in.old) {
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
