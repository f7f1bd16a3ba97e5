package shoot

import (
	"math"
	"strings"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
)

// distances are configured by an operator: from the region of a shoot to the regions of seeds.
type distances map[string]map[string]int

// closest returns the closest of the seeds that fit. It reuses the memory of the list.
func closest(r *request, seeds []*seed, strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy, configured distances) []*seed {
	switch {
	case r.testing: // in any region, for an even distribution
		return keep(seeds, func(s *seed) bool { return s.providerType == r.providerType })
	case strategy == schedulerconfigv1alpha1.MinimalDistance:
		if configured := configured[r.region]; configured != nil {
			near := nearest(seeds, func(s *seed) int { return configuredDistance(r, s, configured) })
			if len(near) > 0 {
				return near
			}
		}
		return nearest(seeds, func(s *seed) int { return nameDistance(r, s) })
	default:
		return keep(seeds, func(s *seed) bool { return s.providerType == r.providerType && s.region == r.region })
	}
}

// unreachable is the distance to a seed that is not a candidate.
const unreachable = math.MaxInt

// configuredDistance returns the distance in the configuration. The shoot's own region need not be in it.
func configuredDistance(r *request, s *seed, configured map[string]int) int {
	if distance, found := configured[s.region]; found {
		return distance
	}
	if s.region == r.region && s.providerType == r.providerType {
		return 0
	}
	return unreachable
}

// nameDistance compares the names of the regions: it is twice their Levenshtein distance without the orientation, with additions if the
// orientation or the provider differs.
func nameDistance(r *request, s *seed) int {
	distance := 2 * levenshtein(r.place.base, s.place.base)
	switch {
	case r.place.orientation == "" || s.place.orientation == "":
		distance++
	case r.place.orientation != s.place.orientation:
		distance += 2
	}
	if s.providerType != r.providerType {
		distance += 2
	}
	return distance
}

var orientations = []string{"north", "south", "east", "west", "central"}

// place is the name of a region in two parts.
type place struct {
	base, orientation string
}

// newPlace splits the name of a region: "europe-west1" has the base "europe-1" and the orientation "west".
func newPlace(region string) place {
	for _, orientation := range orientations {
		if before, after, found := strings.Cut(region, orientation); found {
			return place{before + after, orientation}
		}
	}
	return place{base: region}
}

// levenshtein returns how many characters have to be inserted, removed or replaced to get from one name to the other.
func levenshtein(from, to string) int {
	var buffer [64]int // longer names, which no region has, cause an allocation
	row := buffer[:0]
	for i := range len(to) + 1 {
		row = append(row, i)
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replace := diagonal
			if from[i] != to[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(to)]
}

func keep(seeds []*seed, matches func(*seed) bool) []*seed {
	kept := seeds[:0]
	for _, s := range seeds {
		if matches(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// nearest keeps the seeds with the smallest distance. If none can be reached, the list stays as it was.
func nearest(seeds []*seed, distance func(*seed) int) []*seed {
	best := unreachable
	kept := seeds[:0]
	for _, s := range seeds {
		d := distance(s)
		if d == unreachable || d > best {
			continue
		}
		if d < best {
			best, kept = d, kept[:0]
		}
		kept = append(kept, s)
	}
	return kept
}
