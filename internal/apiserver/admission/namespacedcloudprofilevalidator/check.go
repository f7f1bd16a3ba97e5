package namespacedcloudprofilevalidator

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/core"
)

// find returns the element of a list for which is holds, or nil.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// checkTypes refuses machine and volume types that the parent has. Types that the profile had or offered before the parent got them may
// stay.
func checkTypes(
	spec *corev1beta1.NamespacedCloudProfileSpec, before *corev1beta1.NamespacedCloudProfile, parent *corev1beta1.CloudProfileSpec,
) error {
	old, offered := &before.Spec, before.Status.CloudProfileSpec
	if offered == nil {
		offered = &corev1beta1.CloudProfileSpec{}
	}
	for i := range spec.MachineTypes {
		named := func(m *corev1beta1.MachineType) bool { return m.Name == spec.MachineTypes[i].Name }
		if find(parent.MachineTypes, named) != nil && find(old.MachineTypes, named) == nil && find(offered.MachineTypes, named) == nil {
			return fmt.Errorf("machine type %q is one of the parent and cannot be changed", spec.MachineTypes[i].Name)
		}
	}
	for i := range spec.VolumeTypes {
		named := func(v *corev1beta1.VolumeType) bool { return v.Name == spec.VolumeTypes[i].Name }
		if find(parent.VolumeTypes, named) != nil && find(old.VolumeTypes, named) == nil && find(offered.VolumeTypes, named) == nil {
			return fmt.Errorf("volume type %q is one of the parent and cannot be changed", spec.VolumeTypes[i].Name)
		}
	}
	return nil
}

// checkKubernetes allows a profile only to set the expiration of versions of the parent.
func checkKubernetes(spec, old *corev1beta1.NamespacedCloudProfileSpec, parent *corev1beta1.CloudProfileSpec, now time.Time) error {
	if spec.Kubernetes == nil {
		return nil
	}
	for _, version := range spec.Kubernetes.Versions {
		named := func(v *corev1beta1.ExpirableVersion) bool { return v.Version == version.Version }
		if find(parent.Kubernetes.Versions, named) == nil {
			return fmt.Errorf("the parent does not offer Kubernetes %s", version.Version)
		}
		expires := version.ExpirationDate
		if expires == nil {
			if len(version.Lifecycle) > 0 {
				continue
			}
			return fmt.Errorf("kubernetes %s has no expirationDate", version.Version)
		}
		if old.Kubernetes != nil {
			if was := find(old.Kubernetes.Versions, named); was != nil && expires.Equal(was.ExpirationDate) {
				continue
			}
		}
		if !expires.After(now) {
			return fmt.Errorf("the expirationDate of Kubernetes %s is in the past", version.Version)
		}
	}
	return nil
}

// checkImages allows a profile only to set the expiration of image versions of the parent; its own images must be complete.
func checkImages(
	spec, old *corev1beta1.NamespacedCloudProfileSpec, parent *corev1beta1.CloudProfileSpec, options core.Options, now time.Time,
) field.ErrorList {
	var errs field.ErrorList
	spec = withoutUndeclared(spec, parent)
	for i := range spec.MachineImages {
		image, path := &spec.MachineImages[i], field.NewPath("spec", "machineImages").Index(i)
		named := func(m *corev1beta1.MachineImage) bool { return m.Name == image.Name }
		was := find(old.MachineImages, named)
		if was == nil {
			was = &corev1beta1.MachineImage{}
		}
		ofParent := find(parent.MachineImages, named)
		if ofParent == nil {
			errs = append(errs, core.ValidateMachineImage(*image, parent.MachineCapabilities, options, path)...)
			continue
		}
		if was.Name != "" && image.UpdateStrategy != nil && (was.UpdateStrategy == nil || *was.UpdateStrategy != *image.UpdateStrategy) {
			errs = append(errs, field.Forbidden(path.Child("updateStrategy"), "is that of the parent"))
		}
		for j := range image.Versions {
			version := &image.Versions[j]
			same := func(v *corev1beta1.MachineImageVersion) bool { return v.Version == version.Version }
			if find(ofParent.Versions, same) != nil {
				errs = append(errs, checkOverride(version, find(was.Versions, same), now, path.Child("versions").Index(j))...)
			}
		}
	}
	return errs
}

// checkOverride checks a version of an image that the parent has, too.
func checkOverride(version, was *corev1beta1.MachineImageVersion, now time.Time, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if was != nil {
		// The profile may have had it before the parent. Then it may stay unchanged.
		is, before := version.DeepCopy(), was.DeepCopy()
		is.ExpirationDate, before.ExpirationDate = nil, nil
		if !apiequality.Semantic.DeepEqual(is, before) {
			errs = append(errs, field.Forbidden(path, "is a version of the parent, so only its expirationDate can change"))
		}
	} else {
		for _, part := range []struct {
			name string
			set  bool
		}{
			{"classification", version.Classification != nil},
			{"cri", len(version.CRI) > 0},
			{"architectures", len(version.Architectures) > 0 || len(version.CapabilityFlavors) > 0},
			{"kubeletVersionConstraint", version.KubeletVersionConstraint != nil},
			{"inPlaceUpdates", version.InPlaceUpdates != nil},
		} {
			if part.set {
				errs = append(errs, field.Forbidden(path.Child(part.name), "is that of the parent"))
			}
		}
	}
	expires := version.ExpirationDate
	var before *metav1.Time
	if was != nil {
		before = was.ExpirationDate
	}
	switch {
	case expires == nil && was == nil && len(version.Lifecycle) == 0:
		errs = append(errs, field.Invalid(path.Child("expirationDate"), expires, "must be set for a version of the parent"))
	case expires != nil && !expires.Equal(before) && !expires.After(now):
		errs = append(errs, field.Invalid(path.Child("expirationDate"), expires, "must be in the future"))
	}
	return errs
}

// withoutUndeclared returns a copy of a profile without capabilities if its parent declares none: they have no effect then.
func withoutUndeclared(
	spec *corev1beta1.NamespacedCloudProfileSpec, parent *corev1beta1.CloudProfileSpec,
) *corev1beta1.NamespacedCloudProfileSpec {
	out := spec.DeepCopy()
	if len(parent.MachineCapabilities) > 0 {
		return out
	}
	for i := range out.MachineTypes {
		out.MachineTypes[i].Capabilities = nil
	}
	for i := range out.MachineImages {
		for j := range out.MachineImages[i].Versions {
			version := &out.MachineImages[i].Versions[j]
			// An image of the parent must not get any, even without effect.
			if find(parent.MachineImages, func(m *corev1beta1.MachineImage) bool { return m.Name == out.MachineImages[i].Name }) == nil {
				version.CapabilityFlavors = nil
			}
		}
	}
	return out
}

// checkMerged checks the result of merging the profile into its parent, with the path in the status where it will be.
func checkMerged(
	spec *corev1beta1.NamespacedCloudProfileSpec, parent *corev1beta1.CloudProfileSpec, options core.Options, now time.Time,
) field.ErrorList {
	merged, own := parent.DeepCopy(), withoutUndeclared(spec, parent)
	path := field.NewPath("status", "cloudProfileSpec")
	var errs field.ErrorList
	for _, image := range own.MachineImages {
		for i := range image.Versions {
			if v := &image.Versions[i]; len(v.Architectures) == 0 && len(v.CapabilityFlavors) == 0 && len(parent.MachineCapabilities) == 0 {
				v.Architectures = []string{constants.ArchitectureAMD64}
			}
		}
		ofParent := find(merged.MachineImages, func(m *corev1beta1.MachineImage) bool { return m.Name == image.Name })
		if ofParent == nil {
			if image.UpdateStrategy == nil {
				errs = append(errs, field.Required(path.Child("machineImages").Index(len(merged.MachineImages)).Child("updateStrategy"), "must be set"))
			}
			merged.MachineImages = append(merged.MachineImages, image)
			continue
		}
		for _, version := range image.Versions {
			if len(parent.MachineCapabilities) == 0 {
				version.CapabilityFlavors = nil
			}
			if !slices.ContainsFunc(ofParent.Versions, func(v corev1beta1.MachineImageVersion) bool { return v.Version == version.Version }) {
				ofParent.Versions = append(ofParent.Versions, version)
			}
		}
	}
	for _, machineType := range own.MachineTypes {
		if find(merged.MachineTypes, func(m *corev1beta1.MachineType) bool { return m.Name == machineType.Name }) == nil {
			if machineType.Architecture == nil && len(parent.MachineCapabilities) == 0 {
				machineType.Architecture = new(constants.ArchitectureAMD64)
			}
			merged.MachineTypes = append(merged.MachineTypes, machineType)
		}
	}
	for _, volumeType := range own.VolumeTypes {
		if find(merged.VolumeTypes, func(v *corev1beta1.VolumeType) bool { return v.Name == volumeType.Name }) == nil {
			merged.VolumeTypes = append(merged.VolumeTypes, volumeType)
		}
	}
	return append(errs, core.ValidateCloudProfileSpec(merged, now, options, path)...)
}
