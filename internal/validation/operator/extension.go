package operator

import (
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
)

// ValidateExtension checks a new Extension.
func ValidateExtension(extension *operatorv1alpha1.Extension) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&extension.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, metadataPath)
	clusters := []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot, corev1beta1.ClusterTypeSeed, corev1beta1.ClusterTypeGarden}
	errs = append(errs, core.ControllerResources(extension.Spec.Resources, clusters, specPath.Child("resources"))...)
	if extension.Spec.Deployment != nil {
		errs = append(errs, deployment(extension.Spec.Deployment, specPath.Child("deployment"))...)
	}
	return errs
}

// ValidateExtensionUpdate checks a changed Extension.
func ValidateExtensionUpdate(extension, old *operatorv1alpha1.Extension) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&extension.ObjectMeta, &old.ObjectMeta, metadataPath)
	wasPrimary := map[string]bool{}
	for _, resource := range old.Spec.Resources {
		wasPrimary[resource.Kind+"/"+resource.Type] = primary(resource)
	}
	for i, resource := range extension.Spec.Resources {
		if was, existed := wasPrimary[resource.Kind+"/"+resource.Type]; existed {
			errs = append(errs, immutable(primary(resource), was, specPath.Child("resources").Index(i).Child("primary"))...)
		}
	}
	return append(errs, ValidateExtension(extension)...)
}

// primary reports whether the extension is primarily responsible for the kind and type, which is the default.
func primary(resource corev1beta1.ControllerResource) bool {
	return resource.Primary == nil || *resource.Primary
}

func deployment(deployment *operatorv1alpha1.Deployment, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if extension := deployment.Extension; extension != nil {
		path := path.Child("extension")
		errs = append(errs, chart(extension.Helm, path.Child("helm"))...)
		errs = append(errs, values(extension.Values, path.Child("values"))...)
		errs = append(errs, values(extension.RuntimeClusterValues, path.Child("runtimeClusterValues"))...)
		policies := []corev1beta1.ControllerDeploymentPolicy{
			corev1beta1.ControllerDeploymentPolicyOnDemand, corev1beta1.ControllerDeploymentPolicyAlways, corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots,
		}
		if policy := extension.Policy; policy != nil && !slices.Contains(policies, *policy) {
			errs = append(errs, field.NotSupported(path.Child("policy"), *policy, policies))
		}
		errs = append(errs, metav1validation.ValidateLabelSelector(extension.SeedSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("seedSelector"))...)
	}
	if admission := deployment.Admission; admission != nil {
		path := path.Child("admission")
		if admission.RuntimeCluster != nil {
			errs = append(errs, chart(admission.RuntimeCluster.Helm, path.Child("runtimeCluster", "helm"))...)
		}
		if admission.VirtualCluster != nil {
			errs = append(errs, chart(admission.VirtualCluster.Helm, path.Child("virtualCluster", "helm"))...)
		}
		errs = append(errs, values(admission.Values, path.Child("values"))...)
	}
	names := sets.New[string]()
	for i, resource := range deployment.Resources {
		path := path.Child("resources").Index(i)
		errs = append(errs, required(resource.Name, path.Child("name"))...)
		errs = append(errs, unique(names, resource.Name, path.Child("name"))...)
		if ref := resource.ResourceRef; ref.APIVersion != "v1" || ref.Kind != "Secret" && ref.Kind != "ConfigMap" {
			errs = append(errs, field.NotSupported(path.Child("resourceRef"), ref.APIVersion+", "+ref.Kind, []string{"v1, Secret", "v1, ConfigMap"}))
		}
		errs = append(errs, required(resource.ResourceRef.Name, path.Child("resourceRef", "name"))...)
	}
	return errs
}

func chart(helm *operatorv1alpha1.ExtensionHelm, path *field.Path) field.ErrorList {
	if helm == nil {
		return nil
	}
	path = path.Child("ociRepository")
	if helm.OCIRepository == nil {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	return core.OCIRepository(helm.OCIRepository, path)
}

func values(raw *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw.Raw, &object); err != nil {
		return field.ErrorList{field.Invalid(path, string(raw.Raw), "must be an object")}
	}
	return nil
}
