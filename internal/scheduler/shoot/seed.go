package shoot

import (
	"math"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// resourceShoots is the resource by which a Seed says how many shoots it takes.
const resourceShoots corev1.ResourceName = "shoots"

// unlimited is the room of a seed that does not say how many shoots it takes.
const unlimited = math.MaxInt64

// seed is what decisions need to know of a Seed, in the form that is quickest to look at.
type seed struct {
	name                 string
	unusable             reason // fits, if it is usable
	providerType, region string
	place                place // the region, taken apart
	zones                int
	labels               labels.Set
	taints               []corev1beta1.SeedTaint
	restrictions         []string
	networks             []netip.Prefix
	defaultPods          []netip.Prefix // for shoots that do not say
	defaultServices      []netip.Prefix
	allocatable          int64
}

func newSeed(s *corev1beta1.Seed) *seed {
	out := &seed{
		name:         s.Name,
		unusable:     usable(s),
		providerType: s.Spec.Provider.Type,
		region:       s.Spec.Provider.Region,
		place:        newPlace(s.Spec.Provider.Region),
		zones:        len(s.Spec.Provider.Zones),
		labels:       s.Labels,
		taints:       s.Spec.Taints,
		networks:     prefixes(s.Spec.Networks.Nodes, &s.Spec.Networks.Pods, &s.Spec.Networks.Services),
		allocatable:  unlimited,
	}
	for _, restriction := range s.Spec.AccessRestrictions {
		out.restrictions = append(out.restrictions, restriction.Name)
	}
	if defaults := s.Spec.Networks.ShootDefaults; defaults != nil {
		out.defaultPods, out.defaultServices = prefixes(defaults.Pods), prefixes(defaults.Services)
	}
	if allocatable, limited := s.Status.Allocatable[resourceShoots]; limited {
		out.allocatable = allocatable.Value()
	}
	return out
}

// usable returns why a Seed takes no shoots at all, or fits.
func usable(s *corev1beta1.Seed) reason {
	settings := s.Spec.Settings
	switch {
	case s.DeletionTimestamp != nil:
		return beingDeleted
	case settings != nil && settings.Scheduling != nil && !settings.Scheduling.Visible:
		return invisible
	case s.Status.LastOperation == nil:
		return notReconciled
	}
	if status, _ := condition(s, corev1beta1.SeedGardenletReady); status != corev1beta1.ConditionTrue {
		return gardenletNotReady
	}
	if status, found := condition(s, corev1beta1.SeedBackupBucketsReady); found && status != corev1beta1.ConditionTrue {
		return backupBucketsNotReady
	}
	return fits
}

func condition(s *corev1beta1.Seed, conditionType corev1beta1.ConditionType) (status corev1beta1.ConditionStatus, found bool) {
	i := slices.IndexFunc(s.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return "", false
	}
	return s.Status.Conditions[i].Status, true
}

// prefixes parses networks. What is no network was refused by the API server, or is none of ours to judge.
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

// selection is a SeedSelector in the form that is quickest to look at. The zero value selects every seed.
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

// matchesProvider tells whether the type of a seed's provider is among those of the selection, if it names any.
func (s *selection) matchesProvider(in *seed) bool {
	return len(s.providerTypes) == 0 || slices.Contains(s.providerTypes, "*") || slices.Contains(s.providerTypes, in.providerType)
}
