package shoot

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// request is what a Shoot requires of a seed.
type request struct {
	shoot                types.NamespacedName
	uid                  types.UID
	providerType, region string
	place                place // the parts of the region's name
	testing              bool
	zonal                bool     // the control plane tolerates the failure of a zone
	pinnedZones          []string // those that the control plane must be in
	workerZones          []string
	selection            selection
	tolerations          []corev1beta1.Toleration
	restrictions         []string
	domain               string   // for whose records only the landscape has credentials
	refusedBy            []string // seeds that do not offer the domain, although nothing in the Seeds says so
	networks             []netip.Prefix
	// Whether the networks come from the seed, and whether the seed must have defaults for them.
	podsFromSeed, servicesFromSeed bool
	mustHavePods, mustHaveServices bool
}

func newRequest(s *corev1beta1.Shoot) (*request, error) {
	r := &request{
		shoot:        types.NamespacedName{Namespace: s.Namespace, Name: s.Name},
		uid:          s.UID,
		providerType: s.Spec.Provider.Type,
		region:       s.Spec.Region,
		place:        newPlace(s.Spec.Region),
		testing:      ptr.Deref(s.Spec.Purpose, "") == corev1beta1.ShootPurposeTesting,
		tolerations:  s.Spec.Tolerations,
		workerZones:  s.Spec.WorkerZones(),
		domain:       dnsname.OfLandscape(s.Spec.DNS),
	}
	if c := s.Spec.ControlPlane; c != nil {
		r.zonal = c.HighAvailability != nil && c.HighAvailability.FailureTolerance.Type == corev1beta1.FailureToleranceTypeZone
		r.pinnedZones = c.Zones
	}
	for _, restriction := range s.Spec.AccessRestrictions {
		r.restrictions = append(r.restrictions, restriction.Name)
	}
	var err error
	if r.selection, err = newSelection(s.Spec.SeedSelector); err != nil {
		return nil, fmt.Errorf("spec.seedSelector: %w", err)
	}
	r.setNetworks(s)
	return r, nil
}

// setNetworks sets the networks that must not overlap with those of the seed, as a VPN connects them.
func (r *request) setNetworks(s *corev1beta1.Shoot) {
	networking := s.Spec.Networking
	if networking == nil {
		networking = &corev1beta1.Networking{}
	}
	r.networks = prefixes(networking.Nodes, networking.Pods, networking.Services)
	// The infrastructure may assign IPv6 networks later; IPv4 networks must be set from the start.
	must := !slices.Contains(networking.IPFamilies, corev1beta1.IPFamilyIPv6)
	r.podsFromSeed, r.mustHavePods = networking.Pods == nil && !s.Workerless(), must
	r.servicesFromSeed, r.mustHaveServices = networking.Services == nil, must
}

// unassigned reports whether a Shoot waits for this scheduler.
func unassigned(s *corev1beta1.Shoot) bool {
	return s.Spec.SeedName == nil && s.DeletionTimestamp == nil && !s.SelfHosted() &&
		ptr.Deref(s.Spec.SchedulerName, constants.DefaultSchedulerName) == constants.DefaultSchedulerName
}

// profileKey identifies a CloudProfile or, if it has a namespace, a NamespacedCloudProfile.
type profileKey = types.NamespacedName

// profileOf returns the profile that a Shoot uses.
func profileOf(s *corev1beta1.Shoot) profileKey {
	switch ref := cloudprofile.Reference(&s.Spec); {
	case ref == nil:
		return profileKey{}
	case ref.Kind == constants.CloudProfileReferenceKindNamespacedCloudProfile:
		return profileKey{Namespace: s.Namespace, Name: ref.Name}
	default:
		return profileKey{Name: ref.Name}
	}
}

// profile has the fields of a CloudProfile or NamespacedCloudProfile that decisions need.
type profile struct {
	selection selection
	err       error  // why the selector is invalid
	root      string // the CloudProfile itself, or the one that a NamespacedCloudProfile extends
}

func newProfile(selector *corev1beta1.SeedSelector, root string) *profile {
	selection, err := newSelection(selector)
	return &profile{selection: selection, err: err, root: root}
}
