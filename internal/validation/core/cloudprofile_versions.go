package core

import (
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// kubernetesVersion is the form of offered Kubernetes versions.
var kubernetesVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// classifications that an operator can give a version; the others follow from its lifecycle.
var classifications = []corev1beta1.VersionClassification{
	corev1beta1.ClassificationPreview, corev1beta1.ClassificationSupported, corev1beta1.ClassificationDeprecated, corev1beta1.ClassificationExpired,
}

func kubernetesSettings(settings corev1beta1.KubernetesSettings, now time.Time, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	path = path.Child("versions")
	if len(settings.Versions) == 0 {
		errs = append(errs, field.Required(path, "must have at least one entry"))
	}
	seen := sets.New[string]()
	supportedByMinor := map[[2]uint64][]int{}
	for i, version := range settings.Versions {
		path := path.Index(i)
		if !kubernetesVersion.MatchString(version.Version) {
			errs = append(errs, field.Invalid(path, version.Version, "must be a version like 1.36.1"))
		}
		if seen.Has(version.Version) && version.Version != "" {
			errs = append(errs, field.Duplicate(path.Child("version"), version.Version))
		}
		seen.Insert(version.Version)
		errs = append(errs, expirableVersion(version, now, opts, path)...)
		if parsed, err := semver.NewVersion(version.Version); err == nil && version.ClassificationAt(now) == corev1beta1.ClassificationSupported {
			minor := [2]uint64{parsed.Major(), parsed.Minor()}
			supportedByMinor[minor] = append(supportedByMinor[minor], i)
		}
	}
	for _, indices := range supportedByMinor {
		if len(indices) < 2 {
			continue
		}
		for _, i := range indices {
			errs = append(errs, field.Forbidden(path.Index(i), "only one patch version of a minor version can be supported"))
		}
	}

	latest, err := latestVersion(settings.Versions)
	switch {
	case err != nil || latest == nil:
		errs = append(errs, field.Invalid(path, "", "the latest version is unknown"))
	case latest.ExpirationDate != nil: //nolint:staticcheck // still in use without a lifecycle
		errs = append(errs, field.Invalid(path.Key("").Child("expirationDate"), latest.ExpirationDate, "the latest version must not expire"))
	case len(latest.Lifecycle) > 0 && latest.ClassificationAt(now) == corev1beta1.ClassificationExpired:
		errs = append(errs, field.Invalid(path.Key("").Child("lifecycle"), latest.Version, "the latest version must not expire"))
	}
	return errs
}

// latestVersion returns the highest version of all.
func latestVersion(versions []corev1beta1.ExpirableVersion) (*corev1beta1.ExpirableVersion, error) {
	var latest *corev1beta1.ExpirableVersion
	var highest *semver.Version
	for i := range versions {
		version, err := semver.NewVersion(versions[i].Version)
		if err != nil {
			return nil, err
		}
		if highest == nil || version.GreaterThan(highest) {
			latest, highest = &versions[i], version
		}
	}
	return latest, nil
}

func expirableVersion(version corev1beta1.ExpirableVersion, now time.Time, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if version.ClassificationAt(now) == corev1beta1.ClassificationUnavailable {
		errs = append(errs, field.Forbidden(path, "must be available already"))
	}
	if version.Classification != nil { //nolint:staticcheck // still in use without a lifecycle
		classification := *version.Classification //nolint:staticcheck // as above
		errs = append(errs, supported(classification, classifications, path.Child("classification"))...)
		if classification == corev1beta1.ClassificationExpired && !opts.VersionClassificationLifecycle {
			errs = append(errs, field.Forbidden(path.Child("classification"), "a version expires by its expirationDate"))
		}
	}
	if len(version.Lifecycle) == 0 {
		return errs
	}
	path = path.Child("lifecycle")
	if !opts.VersionClassificationLifecycle {
		return append(errs, field.Forbidden(path, "needs the feature gate VersionClassificationLifecycle"))
	}
	if version.Classification != nil || version.ExpirationDate != nil { //nolint:staticcheck // as above
		errs = append(errs, field.Forbidden(path, "excludes classification and expirationDate"))
	}
	order := []corev1beta1.VersionClassification{
		corev1beta1.ClassificationUnavailable, corev1beta1.ClassificationPreview, corev1beta1.ClassificationSupported,
		corev1beta1.ClassificationDeprecated, corev1beta1.ClassificationExpired,
	}
	for i, stage := range version.Lifecycle {
		path := path.Index(i)
		errs = append(errs, supported(stage.Classification, order, path.Child("classification"))...)
		if i == 0 {
			continue
		}
		before := version.Lifecycle[i-1]
		if slices.Index(order, stage.Classification) <= slices.Index(order, before.Classification) {
			errs = append(errs, field.Invalid(path.Child("classification"), stage.Classification, "must come after that of the stage before"))
		}
		if stage.StartTime == nil {
			errs = append(errs, field.Required(path.Child("startTime"), "only the first stage can go without"))
		} else if before.StartTime != nil && !stage.StartTime.After(before.StartTime.Time) {
			errs = append(errs, field.Invalid(path.Child("startTime"), stage.StartTime, "must be after that of the stage before"))
		}
	}
	return errs
}

var updateStrategies = []corev1beta1.MachineImageUpdateStrategy{
	corev1beta1.UpdateStrategyMajor, corev1beta1.UpdateStrategyMinor, corev1beta1.UpdateStrategyPatch,
}

// machineImages checks the images of a CloudProfile.
func machineImages(images []corev1beta1.MachineImage, definitions capabilities, opts Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(images) == 0 {
		errs = append(errs, field.Required(path, "must have at least one entry"))
	}
	errs = append(errs, machineImageVersionsParse(images, path)...)
	for i, image := range images {
		errs = append(errs, machineImage(image, definitions, opts, path.Index(i))...)
	}
	return errs
}

func machineImage(image corev1beta1.MachineImage, definitions capabilities, opts Options, path *field.Path) field.ErrorList {
	errs := machineImageName(image.Name, path.Child("name"))
	if len(image.Versions) == 0 {
		errs = append(errs, field.Required(path.Child("versions"), "must have at least one entry"))
	}
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
		errs = append(errs, machineImageVersion(version, opts, path)...)
		errs = append(errs, definitions.checkImageVersion(version, path)...)
		if len(version.CRI) == 0 {
			errs = append(errs, field.Required(path.Child("cri"), "must have at least one entry"))
		}
	}
	return errs
}

// ValidateMachineImage checks one image that a profile adds, of machines with certain capabilities.
func ValidateMachineImage(
	image corev1beta1.MachineImage, machines []corev1beta1.CapabilityDefinition, opts Options, path *field.Path,
) field.ErrorList {
	definitions, _ := capabilityDefinitions(machines, opts, path)
	return machineImage(image, definitions, opts, path)
}

// machineImageVersionsParse adds an error at the image to the one at a version that cannot be parsed: its latest version is unknown.
func machineImageVersionsParse(images []corev1beta1.MachineImage, path *field.Path) field.ErrorList {
	for _, image := range images {
		for _, version := range image.Versions {
			if _, err := semver.NewVersion(version.Version); err != nil {
				return field.ErrorList{field.Invalid(path, version.Version, "the latest version is unknown of "+image.Name)}
			}
		}
	}
	return nil
}

func machineImageName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	if !typeName.MatchString(name) {
		return field.ErrorList{field.Invalid(path, name, "must consist of letters, digits, hyphens, underscores and dots")}
	}
	return nil
}

// machineImageVersion checks a version of an image.
func machineImageVersion(version corev1beta1.MachineImageVersion, opts Options, path *field.Path) field.ErrorList {
	errs := machineImageVersionFormat(version, path)
	if version.Classification != nil { //nolint:staticcheck // still in use without a lifecycle
		errs = append(errs, supported(*version.Classification, classifications, path.Child("classification"))...) //nolint:staticcheck // as above
	}
	if len(version.Lifecycle) > 0 && !opts.VersionClassificationLifecycle {
		errs = append(errs, field.Forbidden(path.Child("lifecycle"), "needs the feature gate VersionClassificationLifecycle"))
	}
	return append(errs, containerRuntimes(version.CRI, path.Child("cri"))...)
}

// machineImageVersionFormat checks a version without its parent.
func machineImageVersionFormat(version corev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if version.Version == "" {
		errs = append(errs, field.Required(path.Child("version"), "must be set"))
	}
	if _, err := semver.NewVersion(version.Version); err != nil {
		errs = append(errs, field.Invalid(path.Child("version"), version.Version, "must be a semantic version"))
	}
	if version.KubeletVersionConstraint != nil {
		if _, err := semver.NewConstraint(*version.KubeletVersionConstraint); err != nil {
			errs = append(errs, field.Invalid(path.Child("kubeletVersionConstraint"), *version.KubeletVersionConstraint, err.Error()))
		}
	}
	if updates := version.InPlaceUpdates; updates != nil && updates.MinVersionForUpdate != nil {
		if _, err := semver.NewVersion(*updates.MinVersionForUpdate); err != nil {
			errs = append(errs, field.Invalid(path.Child("minVersionForInPlaceUpdate"), *updates.MinVersionForUpdate, "must be a semantic version"))
		}
	}
	return errs
}

func containerRuntimes(list []corev1beta1.CRI, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1beta1.CRIName]()
	for i, cri := range list {
		path := path.Index(i)
		if seen.Has(cri.Name) {
			errs = append(errs, field.Duplicate(path, cri.Name))
		}
		seen.Insert(cri.Name)
		errs = append(errs, supported(cri.Name, []corev1beta1.CRIName{corev1beta1.CRINameContainerD}, path.Child("name"))...)
		types := sets.New[string]()
		for j, runtime := range cri.ContainerRuntimes {
			path := path.Child("containerRuntimes").Index(j).Child("type")
			if !typeName.MatchString(runtime.Type) {
				errs = append(errs, field.Invalid(path, runtime.Type, "must be set, and consist of letters, digits, hyphens, underscores and dots"))
			} else if types.Has(runtime.Type) {
				errs = append(errs, field.Duplicate(path, runtime.Type))
			}
			types.Insert(runtime.Type)
		}
	}
	return errs
}

var architectures = []string{constants.ArchitectureAMD64, constants.ArchitectureARM64}
