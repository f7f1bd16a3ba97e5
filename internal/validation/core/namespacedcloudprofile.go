package core

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// ValidateNamespacedCloudProfile checks a new NamespacedCloudProfile without its parent. An admission plugin
// checks the merged profile.
func ValidateNamespacedCloudProfile(profile *corev1beta1.NamespacedCloudProfile, opts Options) field.ErrorList {
	errs := validateName(&profile.ObjectMeta, true)
	spec, path := profile.Spec, field.NewPath("spec")
	errs = append(errs, supported(spec.Parent.Kind, []string{constants.CloudProfileReferenceKindCloudProfile}, path.Child("parent", "kind"))...)
	if spec.Parent.Name == "" {
		errs = append(errs, field.Required(path.Child("parent", "name"), "must be set"))
	}
	if spec.Kubernetes != nil {
		seen := sets.New[string]()
		for i, version := range spec.Kubernetes.Versions {
			path := path.Child("kubernetes", "versions").Index(i)
			if !kubernetesVersion.MatchString(version.Version) {
				errs = append(errs, field.Invalid(path, version.Version, "must be a version like 1.36.1"))
			} else if seen.Has(version.Version) {
				errs = append(errs, field.Duplicate(path, version.Version))
			}
			seen.Insert(version.Version)
			if version.Classification != nil { //nolint:staticcheck // still in use without a lifecycle
				errs = append(errs, supported(*version.Classification, classifications, path.Child("classification"))...) //nolint:staticcheck // as above
				errs = append(errs, field.Forbidden(path.Child("classification"), "is that of the parent"))
			}
			if len(version.Lifecycle) > 0 && !opts.VersionClassificationLifecycle {
				errs = append(errs, field.Forbidden(path.Child("lifecycle"), "needs the feature gate VersionClassificationLifecycle"))
			}
		}
	}
	images := path.Child("machineImages")
	errs = append(errs, machineImageVersionsParse(spec.MachineImages, images)...)
	for i, image := range spec.MachineImages {
		path := images.Index(i)
		errs = append(errs, machineImageName(image.Name, path.Child("name"))...)
		if image.UpdateStrategy != nil {
			errs = append(errs, supported(*image.UpdateStrategy, updateStrategies, path.Child("updateStrategy"))...)
		}
		seen := sets.New[string]()
		for j, version := range image.Versions {
			path := path.Child("versions").Index(j)
			if seen.Has(version.Version) && version.Version != "" {
				errs = append(errs, field.Duplicate(path, image.Name+":"+version.Version))
			}
			seen.Insert(version.Version)
			if version.Version == "" {
				errs = append(errs, field.Required(path.Child("version"), "must be set"))
			}
			errs = append(errs, machineImageVersionFormat(version, path)...)
			errs = append(errs, imageArchitectureNames(version.Architectures, architectures, path.Child("architectures"))...)
		}
	}
	errs = append(errs, machineTypes(spec.MachineTypes, anyCapabilities, path.Child("machineTypes"))...)
	errs = append(errs, volumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	errs = append(errs, caBundle(spec.CABundle, path.Child("caBundle"))...)
	return append(errs, limits(spec.Limits, path.Child("limits"))...)
}

// ValidateNamespacedCloudProfileUpdate checks a changed NamespacedCloudProfile.
func ValidateNamespacedCloudProfileUpdate(profile, old *corev1beta1.NamespacedCloudProfile, opts Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, immutable(profile.Spec.Parent, old.Spec.Parent, field.NewPath("spec", "parent"))...)
	return append(errs, ValidateNamespacedCloudProfile(profile, opts)...)
}

// anyCapabilities is a placeholder for those of the parent, which are unknown here.
var anyCapabilities = capabilities{}
