package extensions

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateCluster checks a new or changed Cluster.
func ValidateCluster(cluster *extensionsv1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&cluster.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, requiredObject(cluster.Spec.CloudProfile, specPath.Child("cloudProfile"))...)
	return append(errs, requiredObject(cluster.Spec.Shoot, specPath.Child("shoot"))...)
}

func requiredObject(obj runtime.RawExtension, path *field.Path) field.ErrorList {
	if len(obj.Raw) == 0 && obj.Object == nil {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	return nil
}
