package shoot

import (
	"fmt"
	"strings"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
)

// unschedulable is the error if no seed fits: how many seeds there are, and how many of them do not fit for which reason.
type unschedulable struct {
	seeds        int
	counts       [reasons]int
	providerType string // of the shoot
}

// Error is the same as long as the counts are.
func (u *unschedulable) Error() string {
	if u.seeds == 0 {
		return "there are no seeds"
	}
	if u.counts[otherProvider] == u.seeds {
		// The words are those of the original: clients find out by them that it is of no use to wait.
		return fmt.Sprintf("none out of the %d seeds has a matching provider for %q", u.seeds, u.providerType)
	}
	var parts []string
	for reason, count := range u.counts {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, texts[reason]))
		}
	}
	return fmt.Sprintf("none of %d seeds fits: %s", u.seeds, strings.Join(parts, ", "))
}

// landscape is the input of a decision besides the shoot and its profile.
type landscape struct {
	strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy
	seeds    []*seed                 // in a stable order: of equal seeds the first is taken
	shootsOn func(name string) int64 // the number of shoots on a seed
	regions  distances               // for the shoot's CloudProfile
}

// decide returns the seed for a shoot: of those that fit and are closest, the one with the least shoots.
func decide(r *request, p *profile, in landscape) (*seed, *unschedulable) {
	failure := &unschedulable{seeds: len(in.seeds), providerType: r.providerType}
	candidates := make([]*seed, 0, len(in.seeds))
	for _, s := range in.seeds {
		if why := check(r, p, s, in.shootsOn(s.name)); why != fits {
			failure.counts[why]++
			continue
		}
		candidates = append(candidates, s)
	}
	nearest := closest(r, candidates, in.strategy, in.regions)
	if len(nearest) == 0 {
		failure.counts[notClosest] += len(candidates)
		return nil, failure
	}
	best := nearest[0]
	for _, s := range nearest[1:] {
		if in.shootsOn(s.name) < in.shootsOn(best.name) {
			best = s
		}
	}
	return best, nil
}
