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

// maxExtensionName is the length of names of Extensions, so that runtime-extension-<name> is a name of a namespace.
const maxExtensionName = 45

// ValidateExtension checks a new Extension. It refuses what gardener-apiserver would refuse of its ControllerRegistration and ControllerDeployment.
func ValidateExtension(extension *operatorv1alpha1.Extension) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&extension.ObjectMeta, false, apivalidation.NameIsDNSLabel, metadataPath)
	if len(extension.Name) > maxExtensionName {
		errs = append(errs, field.TooLong(metadataPath.Child("name"), extension.Name, maxExtensionName))
	}
	clusters := []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot, corev1beta1.ClusterTypeSeed, corev1beta1.ClusterTypeGarden}
	errs = append(errs, core.ControllerResources(extension.Spec.Resources, clusters, specPath.Child("resources"))...)
	if extension.Spec.Deployment != nil {
		errs = append(errs, deployment(extension.Spec.Deployment, specPath.Child("deployment"))...)
		if spec := extension.Spec.Deployment.Extension; spec != nil && spec.Helm != nil && spec.SeedSelector != nil &&
			slices.ContainsFunc(extension.Spec.Resources, func(r corev1beta1.ControllerResource) bool { return primary(r) && registered(r) }) {
			path := specPath.Child("deployment", "extension", "seedSelector")
			errs = append(errs, field.Forbidden(path, "is not possible with a primary resource, which every seed may need"))
		}
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

// registered reports whether a resource is part of the ControllerRegistration: those that are compatible with the garden alone are not.
func registered(resource corev1beta1.ControllerResource) bool {
	return len(resource.ClusterCompatibility) == 0 ||
		slices.ContainsFunc(resource.ClusterCompatibility, func(cluster corev1beta1.ClusterType) bool { return cluster != corev1beta1.ClusterTypeGarden })
}

func deployment(deployment *operatorv1alpha1.Deployment, path *field.Path) field.ErrorList {
	names, errs := core.DeploymentResources(deployment.Resources, path.Child("resources"))
	if extension := deployment.Extension; extension != nil {
		path := path.Child("extension")
		errs = append(errs, chart(extension.Helm, path.Child("helm"))...)
		errs = append(errs, values(extension.Values, names, path.Child("values"))...)
		errs = append(errs, values(extension.RuntimeClusterValues, names, path.Child("runtimeClusterValues"))...)
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
		errs = append(errs, values(admission.Values, names, path.Child("values"))...)
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

func values(raw *apiextensionsv1.JSON, resources sets.Set[string], path *field.Path) field.ErrorList {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw.Raw, &object); err != nil {
		return field.ErrorList{field.Invalid(path, string(raw.Raw), "must be an object")}
	}
	return core.HelmValues(raw.Raw, resources, path)
}
