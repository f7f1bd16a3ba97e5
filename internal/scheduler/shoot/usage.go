package shoot

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// usage counts the shoots of each seed: those in the informer, and those that this process has assigned and that the informer does not
// show on the seed yet. It is not safe for concurrent use.
type usage struct {
	counts  map[string]int64
	shown   map[types.NamespacedName]placement
	assumed map[types.NamespacedName]assumption
}

// placement is the seed of a Shoot in spec and status. While its control plane is migrated, it counts for two seeds.
type placement struct {
	spec, status string
}

// assumption is the seed that this process has assigned to a Shoot.
type assumption struct {
	uid   types.UID
	seed  string
	bound bool // the binding was accepted by the API server
}

func newUsage() usage {
	return usage{
		counts:  map[string]int64{},
		shown:   map[types.NamespacedName]placement{},
		assumed: map[types.NamespacedName]assumption{},
	}
}

func (u *usage) shootsOn(seed string) int64 { return u.counts[seed] }

// set records the seeds of a Shoot in the informer. It returns the seeds that have one shoot less than before.
func (u *usage) set(key types.NamespacedName, s *corev1beta1.Shoot) (left []string) {
	now := placementOf(s)
	if assumed, found := u.assumed[key]; found && (now.spec != "" || assumed.uid != s.UID) {
		left = append(left, u.release(key)...)
	}
	before := u.shown[key]
	if before == now {
		return without(left, now)
	}
	if now == (placement{}) {
		delete(u.shown, key)
	} else {
		u.shown[key] = now
	}
	u.add(now, 1)
	left = append(left, u.add(before, -1)...)
	return without(left, now)
}

// delete records that a Shoot was deleted. It returns the seeds that have one shoot less than before.
func (u *usage) delete(key types.NamespacedName) (left []string) {
	left = u.release(key)
	left = append(left, u.add(u.shown[key], -1)...)
	delete(u.shown, key)
	return left
}

// assume holds a place for a Shoot on a seed, and releases the one that was held before.
func (u *usage) assume(r *request, seed string) {
	u.release(r.shoot)
	u.assumed[r.shoot] = assumption{uid: r.uid, seed: seed}
	u.counts[seed]++
}

// confirm records that a Shoot was bound as assumed.
func (u *usage) confirm(key types.NamespacedName) {
	if assumed, found := u.assumed[key]; found {
		assumed.bound = true
		u.assumed[key] = assumed
	}
}

// release releases the place that is held for a Shoot. It returns the seed, which has one shoot less than before.
func (u *usage) release(key types.NamespacedName) (left []string) {
	assumed, found := u.assumed[key]
	if !found {
		return nil
	}
	delete(u.assumed, key)
	return u.add(placement{spec: assumed.seed}, -1)
}

// add adds n to the counts of the seeds of a placement, and returns the seeds.
func (u *usage) add(p placement, n int64) []string {
	var seeds []string
	for _, seed := range []string{p.spec, p.status} {
		if seed == "" || seed == p.spec && len(seeds) > 0 {
			continue
		}
		seeds = append(seeds, seed)
		if u.counts[seed] += n; u.counts[seed] == 0 {
			delete(u.counts, seed)
		}
	}
	return seeds
}

// without returns the seeds that are not those of a placement.
func without(seeds []string, p placement) []string {
	var rest []string
	for _, seed := range seeds {
		if seed != p.spec && seed != p.status {
			rest = append(rest, seed)
		}
	}
	return rest
}

func placementOf(s *corev1beta1.Shoot) placement {
	return placement{spec: ptr.Deref(s.Spec.SeedName, ""), status: ptr.Deref(s.Status.SeedName, "")}
}
