package core

import (
	"regexp"
	"slices"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/cert"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateCloudProfile checks a new CloudProfile.
func ValidateCloudProfile(profile *corev1beta1.CloudProfile, now time.Time, opts Options) field.ErrorList {
	return append(validateName(&profile.ObjectMeta, false), cloudProfileSpec(&profile.Spec, now, opts, field.NewPath("spec"))...)
}

// ValidateCloudProfileUpdate checks a changed CloudProfile.
func ValidateCloudProfileUpdate(profile, old *corev1beta1.CloudProfile, now time.Time, opts Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&profile.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, limitsUpdate(profile.Spec.Limits, old.Spec.Limits, field.NewPath("spec", "limits"))...)
	return append(errs, ValidateCloudProfile(profile, now, opts)...)
}

// limitsUpdate keeps limits from shrinking below what shoots were allowed before.
func limitsUpdate(limits, old *corev1beta1.Limits, path *field.Path) field.ErrorList {
	if limits == nil || limits.MaxNodesTotal == nil {
		return nil
	}
	if old != nil && old.MaxNodesTotal != nil && *limits.MaxNodesTotal < *old.MaxNodesTotal {
		return field.ErrorList{field.Invalid(path.Child("maxNodesTotal"), *limits.MaxNodesTotal, "cannot be decreased")}
	}
	return nil
}

// ValidateCloudProfileSpec checks what a profile offers, at any path.
func ValidateCloudProfileSpec(spec *corev1beta1.CloudProfileSpec, now time.Time, opts Options, path *field.Path) field.ErrorList {
	return cloudProfileSpec(spec, now, opts, path)
}

func cloudProfileSpec(spec *corev1beta1.CloudProfileSpec, now time.Time, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be set"))
	}
	definitions, definitionErrs := capabilityDefinitions(spec.MachineCapabilities, opts, path.Child("machineCapabilities"))
	errs = append(errs, definitionErrs...)
	errs = append(errs, kubernetesSettings(spec.Kubernetes, now, opts, path.Child("kubernetes"))...)
	errs = append(errs, machineImages(spec.MachineImages, definitions, opts, path.Child("machineImages"))...)
	if len(spec.MachineTypes) == 0 {
		errs = append(errs, field.Required(path.Child("machineTypes"), "must have at least one entry"))
	}
	errs = append(errs, machineTypes(spec.MachineTypes, definitions, path.Child("machineTypes"))...)
	errs = append(errs, volumeTypes(spec.VolumeTypes, path.Child("volumeTypes"))...)
	errs = append(errs, regions(spec.Regions, path.Child("regions"))...)
	if spec.SeedSelector != nil {
		errs = append(errs, labelSelector(&spec.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
	}
	errs = append(errs, caBundle(spec.CABundle, path.Child("caBundle"))...)
	if spec.Bastion != nil {
		errs = append(errs, profileBastion(spec.Bastion, spec, now, path.Child("bastion"))...)
	}
	return append(errs, limits(spec.Limits, path.Child("limits"))...)
}

func caBundle(bundle *string, path *field.Path) field.ErrorList {
	if bundle == nil {
		return nil
	}
	if _, err := cert.ParseCertsPEM([]byte(*bundle)); err != nil {
		return field.ErrorList{field.Invalid(path, *bundle, "must be certificates in PEM form")}
	}
	return nil
}

func limits(limits *corev1beta1.Limits, path *field.Path) field.ErrorList {
	if limits != nil && limits.MaxNodesTotal != nil && *limits.MaxNodesTotal <= 0 {
		return field.ErrorList{field.Invalid(path.Child("maxNodesTotal"), *limits.MaxNodesTotal, "must be positive")}
	}
	return nil
}

// typeName is the form of the names of machine types, images and the like.
var typeName = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// requireTypeName checks a name, and that it is unique.
func requireTypeName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case name == "":
		errs = append(errs, field.Required(path.Child("name"), "must be set"))
	case !typeName.MatchString(name):
		errs = append(errs, field.Invalid(path.Child("name"), name, "must consist of letters, digits, hyphens, underscores and dots"))
	}
	if seen.Has(name) && name != "" {
		errs = append(errs, field.Duplicate(path.Child("name"), name))
	}
	seen.Insert(name)
	return errs
}

func machineTypes(types []corev1beta1.MachineType, definitions capabilities, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, machineType := range types {
		path := path.Index(i)
		errs = append(errs, requireTypeName(machineType.Name, seen, path)...)
		errs = append(errs, nonNegative(machineType.CPU, path.Child("cpu"))...)
		errs = append(errs, nonNegative(machineType.GPU, path.Child("gpu"))...)
		errs = append(errs, nonNegative(machineType.Memory, path.Child("memory"))...)
		if machineType.Architecture != nil {
			if *machineType.Architecture == "" {
				errs = append(errs, field.Required(path.Child("architecture"), "must not be empty if it is set"))
			} else {
				errs = append(errs, supported(*machineType.Architecture, architectures, path.Child("architecture"))...)
			}
		}
		errs = append(errs, definitions.checkMachineType(machineType, path)...)
		if storage := machineType.Storage; storage != nil {
			path := path.Child("storage")
			if (storage.StorageSize == nil) == (storage.MinSize == nil) {
				errs = append(errs, field.Invalid(path, storage.Type, "exactly one of size and minSize must be set"))
			}
			if storage.StorageSize != nil {
				errs = append(errs, nonNegative(*storage.StorageSize, path.Child("size"))...)
			}
			if storage.MinSize != nil {
				errs = append(errs, nonNegative(*storage.MinSize, path.Child("minSize"))...)
			}
		}
	}
	return errs
}

func volumeTypes(types []corev1beta1.VolumeType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, volumeType := range types {
		path := path.Index(i)
		if volumeType.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		} else if seen.Has(volumeType.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), volumeType.Name))
		}
		seen.Insert(volumeType.Name)
		if volumeType.Class == "" {
			errs = append(errs, field.Required(path.Child("class"), "must be set"))
		}
		if volumeType.MinSize != nil {
			errs = append(errs, nonNegative(*volumeType.MinSize, path.Child("minSize"))...)
		}
	}
	return errs
}

func regions(list []corev1beta1.Region, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(path, "must have at least one entry"))
	}
	seen := sets.New[string]()
	for i, region := range list {
		path := path.Index(i)
		if region.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		} else if seen.Has(region.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), region.Name))
		}
		seen.Insert(region.Name)
		zones := sets.New[string]()
		for j, zone := range region.Zones {
			path := path.Child("zones").Index(j)
			if zone.Name == "" {
				errs = append(errs, field.Required(path.Child("name"), "must be set"))
			} else if zones.Has(zone.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), zone.Name))
			}
			zones.Insert(zone.Name)
		}
		errs = append(errs, metav1validation.ValidateLabels(region.Labels, path.Child("labels"))...)
	}
	return errs
}

// profileBastion checks that the profile offers the machine type and image of bastions.
func profileBastion(bastion *corev1beta1.Bastion, spec *corev1beta1.CloudProfileSpec, now time.Time, path *field.Path) field.ErrorList {
	if bastion.MachineType == nil && bastion.MachineImage == nil {
		return field.ErrorList{field.Invalid(path, "", "machineType or machineImage must be set")}
	}
	var errs field.ErrorList
	var wanted []string // architectures
	if machineType := bastion.MachineType; machineType != nil {
		i := slices.IndexFunc(spec.MachineTypes, func(t corev1beta1.MachineType) bool { return t.Name == machineType.Name })
		if i < 0 {
			errs = append(errs, field.Invalid(path.Child("machineType", "name"), machineType.Name, "is not a machine type of this profile"))
		} else {
			wanted = machineTypeArchitectures(spec.MachineTypes[i])
		}
	}
	if image := bastion.MachineImage; image != nil {
		i := slices.IndexFunc(spec.MachineImages, func(m corev1beta1.MachineImage) bool { return m.Name == image.Name })
		fits := func(version corev1beta1.MachineImageVersion) bool {
			return version.ClassificationAt(now) == corev1beta1.ClassificationSupported &&
				(len(wanted) == 0 || slices.ContainsFunc(wanted, func(a string) bool { return slices.Contains(imageArchitectures(version), a) }))
		}
		switch {
		case i < 0:
			errs = append(errs, field.Invalid(path.Child("machineImage", "name"), image.Name, "is not a machine image of this profile"))
		case image.Version == nil:
			if !slices.ContainsFunc(spec.MachineImages[i].Versions, fits) {
				errs = append(errs, field.Invalid(path.Child("machineImage", "name"), image.Name, "has no supported version that fits the machine type"))
			}
		case !slices.ContainsFunc(spec.MachineImages[i].Versions, func(version corev1beta1.MachineImageVersion) bool {
			return version.Version == *image.Version && fits(version)
		}):
			errs = append(errs, field.Invalid(path.Child("machineImage", "version"), *image.Version, "is not a supported version that fits the machine type"))
		}
	}
	return errs
}
