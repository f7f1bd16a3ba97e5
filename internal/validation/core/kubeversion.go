package core

import "github.com/Masterminds/semver/v3"

// kubeVersion is a Kubernetes version, or none if it could not be parsed. The CloudProfile lists the versions, so that
// an unknown one is refused with the list.
type kubeVersion struct{ *semver.Version }

func parseVersion(version string) kubeVersion {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return kubeVersion{}
	}
	return kubeVersion{parsed}
}

// atLeast reports whether the version is known to be a minor version or a later one.
func (v kubeVersion) atLeast(major, minor uint64) bool {
	return v.Version != nil && (v.Major() > major || v.Major() == major && v.Minor() >= minor)
}

// below reports whether the version is known to be earlier than a minor version.
func (v kubeVersion) below(major, minor uint64) bool {
	return v.Version != nil && !v.atLeast(major, minor)
}
