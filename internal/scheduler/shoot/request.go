package shoot

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// request is what a Shoot asks of a seed.
type request struct {
	shoot                types.NamespacedName
	uid                  types.UID
	providerType, region string
	place                place // the region, taken apart
	testing              bool
	zonal                bool // the control plane is to survive the loss of a zone
	selection            selection
	tolerations          []corev1beta1.Toleration
	restrictions         []string
	networks             []netip.Prefix
	// These say that the network comes from the seed, and whether there must be one.
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
		testing:      s.Spec.Purpose != nil && *s.Spec.Purpose == corev1beta1.ShootPurposeTesting,
		tolerations:  s.Spec.Tolerations,
	}
	if c := s.Spec.ControlPlane; c != nil && c.HighAvailability != nil {
		r.zonal = c.HighAvailability.FailureTolerance.Type == corev1beta1.FailureToleranceTypeZone
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

// setNetworks notes the networks that must be apart from those of the seed, as the VPN between them needs it.
func (r *request) setNetworks(s *corev1beta1.Shoot) {
	networking := s.Spec.Networking
	if networking == nil {
		networking = &corev1beta1.Networking{}
	}
	r.networks = prefixes(networking.Nodes, networking.Pods, networking.Services)
	// The infrastructure may assign IPv6 networks later; those of IPv4 must be known from the start.
	must := !slices.Contains(networking.IPFamilies, corev1beta1.IPFamilyIPv6)
	workerless := len(s.Spec.Provider.Workers) == 0
	r.podsFromSeed, r.mustHavePods = networking.Pods == nil && !workerless, must
	r.servicesFromSeed, r.mustHaveServices = networking.Services == nil, must
}

// unassigned tells whether a Shoot waits for this scheduler.
func unassigned(s *corev1beta1.Shoot) bool {
	ours := s.Spec.SchedulerName == nil || *s.Spec.SchedulerName == constants.DefaultSchedulerName
	return s.Spec.SeedName == nil && s.DeletionTimestamp == nil && ours && !selfHosted(s)
}

// selfHosted tells whether the control plane runs on the Shoot's own machines, so that there is no seed.
func selfHosted(s *corev1beta1.Shoot) bool {
	return slices.ContainsFunc(s.Spec.Provider.Workers, func(w corev1beta1.Worker) bool { return w.ControlPlane != nil })
}

// profileKey identifies a CloudProfile or, if it has a namespace, a NamespacedCloudProfile.
type profileKey = types.NamespacedName

// profileOf returns the profile that a Shoot uses.
func profileOf(s *corev1beta1.Shoot) profileKey {
	switch ref := s.Spec.CloudProfile; {
	case ref != nil && ref.Kind == "NamespacedCloudProfile":
		return profileKey{Namespace: s.Namespace, Name: ref.Name}
	case ref != nil:
		return profileKey{Name: ref.Name}
	case s.Spec.CloudProfileName != nil: //nolint:staticcheck // old shoots have this one only
		return profileKey{Name: *s.Spec.CloudProfileName} //nolint:staticcheck // as above
	}
	return profileKey{}
}

// profile is what decisions need to know of a CloudProfile.
type profile struct {
	selection selection
	err       error  // why the selection is unknown
	root      string // the CloudProfile itself, or the one that a NamespacedCloudProfile extends
}

func newProfile(selector *corev1beta1.SeedSelector, root string) *profile {
	selection, err := newSelection(selector)
	return &profile{selection: selection, err: err, root: root}
}
