package shoot

import (
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// usage counts the shoots of each seed: those that the informer has shown, and those that this process has decided about and the informer
// is yet to show. It is not safe for concurrent use.
type usage struct {
	counts  map[string]int64
	shown   map[types.NamespacedName]placement
	assumed map[types.NamespacedName]assumption
}

// placement is where a Shoot is. While its control plane moves, it takes room on two seeds.
type placement struct {
	spec, status string
}

// assumption is the seed that a Shoot was given by this process.
type assumption struct {
	uid   types.UID
	seed  string
	bound bool // the API server has agreed
}

func newUsage() usage {
	return usage{
		counts:  map[string]int64{},
		shown:   map[types.NamespacedName]placement{},
		assumed: map[types.NamespacedName]assumption{},
	}
}

func (u *usage) shootsOn(seed string) int64 { return u.counts[seed] }

// show takes note of a Shoot as it is. It returns the seeds that have one shoot less than before.
func (u *usage) show(key types.NamespacedName, s *corev1beta1.Shoot) (left []string) {
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

// forget takes note that a Shoot is gone. It returns the seeds that have one shoot less than before.
func (u *usage) forget(key types.NamespacedName) (left []string) {
	left = u.release(key)
	left = append(left, u.add(u.shown[key], -1)...)
	delete(u.shown, key)
	return left
}

// assume takes note that a Shoot is about to be bound to a seed, instead of to another one that was assumed before.
func (u *usage) assume(r *request, seed string) {
	u.release(r.shoot)
	u.assumed[r.shoot] = assumption{uid: r.uid, seed: seed}
	u.counts[seed]++
}

// confirm takes note that a Shoot was bound as assumed.
func (u *usage) confirm(key types.NamespacedName) {
	if assumed, found := u.assumed[key]; found {
		assumed.bound = true
		u.assumed[key] = assumed
	}
}

// release takes back what was assumed about a Shoot.
func (u *usage) release(key types.NamespacedName) (left []string) {
	assumed, found := u.assumed[key]
	if !found {
		return nil
	}
	delete(u.assumed, key)
	return u.add(placement{spec: assumed.seed}, -1)
}

// add counts a placement in or out and returns its seeds.
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

// without drops the seeds of a placement, which have what they had.
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
	var p placement
	if s.Spec.SeedName != nil {
		p.spec = *s.Spec.SeedName
	}
	if s.Status.SeedName != nil {
		p.status = *s.Status.SeedName
	}
	return p
}
