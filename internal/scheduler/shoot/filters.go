package shoot

import (
	"net/netip"
	"slices"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// reason is why a seed does not fit a Shoot. Messages list reasons in this order.
type reason int

const (
	fits reason = iota
	beingDeleted
	invisible
	stopped
	notReconciled
	gardenletNotReady
	backupBucketsNotReady
	otherProvider
	notInProfileSelector
	notInShootSelector
	taintNotTolerated
	restrictionNotSupported
	domainNotOffered
	tooFewZones
	zonesMissing
	otherZones
	noDefaultNetworks
	networksOverlap
	full
	notClosest
	reasons // their number
)

// texts complete the sentence "3 seeds ...".
var texts = [reasons]string{
	beingDeleted:            "being deleted",
	invisible:               "hidden from the scheduler",
	stopped:                 "with an emergency stop of the reconciliation of shoots",
	notReconciled:           "not reconciled yet",
	gardenletNotReady:       "without a ready gardenlet (GardenletReady)",
	backupBucketsNotReady:   "without ready backup buckets (BackupBucketsReady)",
	otherProvider:           "of another provider type",
	notInProfileSelector:    "not matching the seed selector of the cloud profile",
	notInShootSelector:      "not matching the seed selector of the shoot",
	taintNotTolerated:       "with taints that the shoot does not tolerate",
	restrictionNotSupported: "not supporting the access restrictions of the shoot",
	domainNotOffered:        "not offering the domain of the shoot (spec.dns.domain)",
	tooFewZones:             "with less than three zones",
	zonesMissing:            "without the zones in spec.controlPlane.zones",
	otherZones:              "with too few zones of the workers, where its control planes must be",
	noDefaultNetworks:       "without default networks for a shoot that leaves them open",
	networksOverlap:         "with networks that overlap with those of the shoot",
	full:                    "without room for another shoot",
	notClosest:              "in another region",
}

// zonesForZonalControlPlane is how many zones it takes to survive the loss of one with a majority.
const zonesForZonalControlPlane = 3

// check returns why a seed with a number of shoots does not fit, or fits. Cheap checks come first.
func check(r *request, p *profile, s *seed, shoots int64) reason {
	switch {
	case s.unusable != fits:
		return s.unusable
	case !providerMatches(r, p, s):
		return otherProvider
	case !p.selection.matchesLabels(s):
		return notInProfileSelector
	case !r.selection.matchesLabels(s):
		return notInShootSelector
	case !tolerated(s.taints, r.tolerations):
		return taintNotTolerated
	case !supported(r.restrictions, s.restrictions):
		return restrictionNotSupported
	case !domainOffered(r.domain, s.defaultDomains) || slices.Contains(r.refusedBy, s.name):
		return domainNotOffered
	case r.zonal && len(s.zones) < zonesForZonalControlPlane:
		return tooFewZones
	case !supported(r.pinnedZones, s.zones):
		return zonesMissing
	case !workerZonesSuffice(r, s):
		return otherZones
	case !networksComplete(r, s):
		return noDefaultNetworks
	case !disjoint(r, s):
		return networksOverlap
	case shoots >= s.allocatable:
		return full
	}
	return fits
}

// providerMatches reports whether the type of the seed's provider is one of those that the selectors name or, if none does, that of the
// shoot.
func providerMatches(r *request, p *profile, s *seed) bool {
	if len(r.selection.providerTypes)+len(p.selection.providerTypes) == 0 {
		return s.providerType == r.providerType
	}
	return p.selection.matchesProvider(s) && r.selection.matchesProvider(s)
}

func tolerated(taints []corev1beta1.SeedTaint, tolerations []corev1beta1.Toleration) bool {
	for _, taint := range taints {
		if !slices.ContainsFunc(tolerations, func(t corev1beta1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerates(toleration corev1beta1.Toleration, taint corev1beta1.SeedTaint) bool {
	return toleration.Key == taint.Key && (toleration.Value == nil || taint.Value != nil && *toleration.Value == *taint.Value)
}

func supported(required, offered []string) bool {
	for _, restriction := range required {
		if !slices.Contains(offered, restriction) {
			return false
		}
	}
	return true
}

// workerZonesSuffice reports whether a seed that takes control planes in zones of the workers only has enough of these. Workers without zones
// can be anywhere, and a control plane that is pinned to zones is in these.
func workerZonesSuffice(r *request, s *seed) bool {
	if !s.enforcesZones || len(r.workerZones) == 0 || len(r.pinnedZones) > 0 {
		return true
	}
	want, common := 1, 0
	if r.zonal {
		want = zonesForZonalControlPlane
	}
	for _, zone := range s.zones {
		if slices.Contains(r.workerZones, zone) {
			common++
		}
	}
	return common >= want
}

// domainOffered reports whether the landscape can write records of a domain for a shoot on a seed with some default domains. A seed without any
// has those of Secrets, which the scheduler may not read; the API server checks them when the shoot is bound, and another seed is tried.
func domainOffered(domain string, defaults []string) bool {
	return domain == "" || len(defaults) == 0 || dnsname.Closest(domain, defaults) != ""
}

func networksComplete(r *request, s *seed) bool {
	return (!r.podsFromSeed || !r.mustHavePods || len(s.defaultPods) > 0) &&
		(!r.servicesFromSeed || !r.mustHaveServices || len(s.defaultServices) > 0)
}

// disjoint reports whether no network of the shoot overlaps with one of the seed.
func disjoint(r *request, s *seed) bool {
	return apart(r.networks, s.networks) &&
		(!r.podsFromSeed || apart(s.defaultPods, s.networks)) &&
		(!r.servicesFromSeed || apart(s.defaultServices, s.networks))
}

func apart(some, others []netip.Prefix) bool {
	for _, one := range some {
		for _, other := range others {
			if one.Overlaps(other) {
				return false
			}
		}
	}
	return true
}
