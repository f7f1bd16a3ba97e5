package shoot

import (
	"math"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// resourceShoots is the allocatable resource of Seeds that limits the number of shoots.
const resourceShoots corev1.ResourceName = "shoots"

// unlimited is the number of shoots for a seed without this limit.
const unlimited = math.MaxInt64

// seed has the fields of a Seed that decisions need, in the form that is cheapest to check.
type seed struct {
	name                 string
	unusable             reason // fits if it is usable
	providerType, region string
	place                place // the parts of the region's name
	zones                []string
	enforcesZones        bool // control planes are in zones of the workers only
	labels               labels.Set
	taints               []corev1beta1.SeedTaint
	restrictions         []string
	defaultDomains       []string // empty if it has those of the landscape
	networks             []netip.Prefix
	defaultPods          []netip.Prefix // for shoots without own networks
	defaultServices      []netip.Prefix
	allocatable          int64
}

func newSeed(s *corev1beta1.Seed) *seed {
	out := &seed{
		name:         s.Name,
		unusable:     usability(s),
		providerType: s.Spec.Provider.Type,
		region:       s.Spec.Provider.Region,
		place:        newPlace(s.Spec.Provider.Region),
		zones:        s.Spec.Provider.Zones,
		labels:       s.Labels,
		taints:       s.Spec.Taints,
		networks:     prefixes(s.Spec.Networks.Nodes, &s.Spec.Networks.Pods, &s.Spec.Networks.Services),
		allocatable:  unlimited,
	}
	for _, restriction := range s.Spec.AccessRestrictions {
		out.restrictions = append(out.restrictions, restriction.Name)
	}
	if settings := s.Spec.Settings; settings != nil && settings.ZoneSelection != nil {
		out.enforcesZones = settings.ZoneSelection.Mode == corev1beta1.ZoneSelectionModeEnforce
	}
	for _, domain := range s.Spec.DNS.Defaults {
		out.defaultDomains = append(out.defaultDomains, domain.Domain)
	}
	if defaults := s.Spec.Networks.ShootDefaults; defaults != nil {
		out.defaultPods, out.defaultServices = prefixes(defaults.Pods), prefixes(defaults.Services)
	}
	if allocatable, limited := s.Status.Allocatable[resourceShoots]; limited {
		out.allocatable = allocatable.Value()
	}
	return out
}

// usability returns why a Seed cannot host any shoots, or fits.
func usability(s *corev1beta1.Seed) reason {
	settings := s.Spec.Settings
	switch {
	case s.DeletionTimestamp != nil:
		return beingDeleted
	case settings != nil && settings.Scheduling != nil && !settings.Scheduling.Visible:
		return invisible
	case s.ShootReconciliationsStopped():
		return stopped
	case s.Status.LastOperation == nil:
		return notReconciled
	}
	if ready := kube.Condition(s.Status.Conditions, corev1beta1.SeedGardenletReady); ready == nil || ready.Status != corev1beta1.ConditionTrue {
		return gardenletNotReady
	}
	if ready := kube.Condition(s.Status.Conditions, corev1beta1.SeedBackupBucketsReady); ready != nil && ready.Status != corev1beta1.ConditionTrue {
		return backupBucketsNotReady
	}
	return fits
}

// prefixes parses networks. Invalid ones, which the API server rejects in most fields, are ignored.
func prefixes(cidrs ...*string) []netip.Prefix {
	var out []netip.Prefix
	for _, cidr := range cidrs {
		if cidr == nil {
			continue
		}
		if prefix, err := netip.ParsePrefix(*cidr); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}

// selection is a SeedSelector in the form that is cheapest to check. The zero value selects every seed.
type selection struct {
	labels        labels.Selector // nil selects everything
	providerTypes []string
}

func newSelection(selector *corev1beta1.SeedSelector) (selection, error) {
	if selector == nil {
		return selection{}, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector.LabelSelector)
	if err != nil {
		return selection{}, err
	}
	if parsed.Empty() {
		parsed = nil
	}
	return selection{labels: parsed, providerTypes: selector.ProviderTypes}, nil
}

func (s *selection) matchesLabels(in *seed) bool {
	return s.labels == nil || s.labels.Matches(in.labels)
}

// matchesProvider reports whether the type of a seed's provider is among those of the selection, if it names any.
func (s *selection) matchesProvider(in *seed) bool {
	return len(s.providerTypes) == 0 || slices.Contains(s.providerTypes, "*") || slices.Contains(s.providerTypes, in.providerType)
}
