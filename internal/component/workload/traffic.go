package workload

import (
	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
)

// sameZoneSince is the version of Kubernetes from which on PreferSameZone is known.
var sameZoneSince = semver.MustParse("1.34.0")

// PreferSameZone returns the trafficDistribution of Services whose clients prefer pods in their zone, for a version of Kubernetes. The older of the
// two names has the same meaning, and is that for an unknown version, too.
func PreferSameZone(kubernetes string) *string {
	version, err := semver.NewVersion(kubernetes)
	if err != nil || version.LessThan(sameZoneSince) {
		return new(corev1.ServiceTrafficDistributionPreferClose)
	}
	return new(corev1.ServiceTrafficDistributionPreferSameZone)
}
