package cloudprofile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/capability"
)

// Wanted is what a user says about a version: nothing, a major version, or a minor version.
type Wanted struct{ major, minor *uint64 }

// ParseWanted reads what a user wrote. Complete says that it names one version, which is taken as it is.
func ParseWanted(version string) (wanted Wanted, complete bool, err error) {
	parts := strings.Split(version, ".")
	if len(parts) == 3 {
		return Wanted{}, true, nil
	}
	number := func(s string) (*uint64, error) {
		if s == "" {
			return nil, nil
		}
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not part of a version; write it like 1, 1.36 or 1.36.1", s)
		}
		return &n, nil
	}
	if wanted.major, err = number(parts[0]); err != nil {
		return Wanted{}, false, err
	}
	if len(parts) == 2 {
		if wanted.minor, err = number(parts[1]); err != nil {
			return Wanted{}, false, err
		}
		if wanted.major == nil && wanted.minor != nil {
			return Wanted{}, false, fmt.Errorf("%q has no major version", version)
		}
	}
	return wanted, false, nil
}

func (w Wanted) fits(version *semver.Version) bool {
	return (w.major == nil || *w.major == version.Major()) && (w.minor == nil || *w.minor == version.Minor())
}

// selectable reports whether a version can be chosen for users who do not name it.
func selectable(version corev1beta1.ExpirableVersion, now time.Time) bool {
	switch version.ClassificationAt(now) {
	case corev1beta1.ClassificationPreview, corev1beta1.ClassificationExpired, corev1beta1.ClassificationUnavailable:
		return false
	}
	return true
}

// NewestKubernetes returns the newest version that fits, can be used now and is no preview; "" if there is none.
func NewestKubernetes(versions []corev1beta1.ExpirableVersion, wanted Wanted, now time.Time) string {
	var (
		best   string
		newest *semver.Version
	)
	for _, version := range versions {
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || !wanted.fits(parsed) || !selectable(version, now) || newest != nil && !parsed.GreaterThan(newest) {
			continue
		}
		best, newest = version.Version, parsed
	}
	return best
}

// NewestImage returns the newest version of an image that fits, can be used now, is no preview, and is accepted; "" if there is
// none. Deprecated versions are the last resort.
func NewestImage(image *corev1beta1.MachineImage, wanted Wanted, now time.Time, accept func(*corev1beta1.MachineImageVersion) bool) string {
	return Newest(ImageVersions(image), now, func(i int, version *semver.Version) bool {
		return wanted.fits(version) && accept(&image.Versions[i])
	})
}

// ImageVersions returns the versions of an image, in their order.
func ImageVersions(image *corev1beta1.MachineImage) []corev1beta1.ExpirableVersion {
	versions := make([]corev1beta1.ExpirableVersion, 0, len(image.Versions))
	for i := range image.Versions {
		versions = append(versions, image.Versions[i].ExpirableVersion)
	}
	return versions
}

// Newest returns the newest of versions that can be used now, is no preview, and is accepted; "" if there is none. Deprecated versions
// are the last resort. What decides whether to accept one gets its place in the list.
func Newest(versions []corev1beta1.ExpirableVersion, now time.Time, accept func(int, *semver.Version) bool) string {
	var (
		best       string
		newest     *semver.Version
		deprecated bool
	)
	for i, version := range versions {
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || !selectable(version, now) || !accept(i, parsed) {
			continue
		}
		old := version.ClassificationAt(now) == corev1beta1.ClassificationDeprecated
		if newest == nil || deprecated && !old || deprecated == old && parsed.GreaterThan(newest) {
			best, newest, deprecated = version.Version, parsed, old
		}
	}
	return best
}

// Architecture returns the architecture of a machine type. Without one it is amd64.
func Architecture(machineType *corev1beta1.MachineType) string {
	if values := machineType.Capabilities[constants.ArchitectureName]; len(values) > 0 {
		return values[0]
	}
	if machineType.Architecture != nil && *machineType.Architecture != "" {
		return *machineType.Architecture
	}
	return constants.ArchitectureAMD64
}

// RunsOn reports whether a version of an image is made for machines of an architecture and of a type, which may be unknown.
func RunsOn(
	profile *corev1beta1.CloudProfileSpec, version *corev1beta1.MachineImageVersion, architecture string, machineType *corev1beta1.MachineType,
) bool {
	if len(profile.MachineCapabilities) == 0 {
		return slices.Contains(version.Architectures, architecture)
	}
	flavors := version.CapabilityFlavors
	if len(flavors) == 0 {
		flavors = []corev1beta1.MachineImageFlavor{{}}
	}
	machine := capability.OfMachine(machineType, architecture)
	return slices.ContainsFunc(flavors, func(flavor corev1beta1.MachineImageFlavor) bool {
		_, ok := capability.Match(profile.MachineCapabilities, machine, flavor.Capabilities)
		return ok
	})
}
