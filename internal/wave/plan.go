package wave

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/skew"
)

// Selection says which gardenlets are upgraded, and in which order.
type Selection struct {
	// Target is what they are upgraded to.
	Target Target
	// Seeds selects Seeds by their labels.
	Seeds labels.Selector
	// Canaries are seeds of the first wave, whatever its size.
	Canaries []string
	// Size is how many gardenlets are upgraded at a time, at least 1.
	Size int
	// Accepted are seeds of an upgrade that has begun, and that are compared with how they are now, instead of how they were before.
	Accepted []string
}

// Plan is what is left of an upgrade.
type Plan struct {
	// Waves are the next ones, in their order.
	Waves []Wave
	// Done are the seeds that have the version.
	Done []string
	// Held are the seeds whose gardenlets cannot be upgraded.
	Held []Held
	// Kept are the seeds that would get the version with the image vector overwrite that their Gardenlet has, which may be that of another one.
	Kept []string
	// Warning is about the versions of garden and gardenlets. It may be empty.
	Warning string
}

// Wave has the gardenlets that are upgraded at the same time.
type Wave struct {
	// Begun says that they were changed by a former run.
	Begun bool
	// Gardenlets are in the order of their names.
	Gardenlets []Gardenlet
}

// Gardenlet is one whose version is in an object of its own.
type Gardenlet struct {
	// Seed is the name of the seed.
	Seed string
	// Version is what it has reported last. Empty if it has not.
	Version string
	// Followers are seeds that are shoots, and whose gardenlets get the version of this one by themselves.
	Followers []string

	// affected are further seeds whose gardenlets it deploys, with a version of their own.
	affected []string
	// object is the Gardenlet or the ManagedSeed.
	object client.Object
}

// seeds are those whose health depends on a gardenlet.
func (g Gardenlet) seeds() []string {
	return slices.Concat([]string{g.Seed}, g.Followers, g.affected)
}

// seedsOf are those whose health depends on gardenlets.
func seedsOf(gardenlets []Gardenlet) []string {
	var seeds []string
	for _, g := range gardenlets {
		seeds = append(seeds, g.seeds()...)
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

// Held is a seed whose gardenlet cannot be upgraded.
type Held struct {
	Seed, Reason string
}

// landscape has the objects that say which gardenlets there are, by the names of their seeds.
type landscape struct {
	seeds        map[string]*corev1beta1.Seed
	gardenlets   map[string]*seedmanagementv1alpha1.Gardenlet
	managedSeeds map[string]*seedmanagementv1alpha1.ManagedSeed
}

// children are the ManagedSeeds whose shoots are on a seed, in the order of their names.
func (l *landscape) children(seed string) []*seedmanagementv1alpha1.ManagedSeed {
	var found []*seedmanagementv1alpha1.ManagedSeed
	for name, managed := range l.managedSeeds {
		if l.gardenlets[name] == nil && l.seeds[name] != nil && parent(managed) == seed {
			found = append(found, managed)
		}
	}
	slices.SortFunc(found, func(a, b *seedmanagementv1alpha1.ManagedSeed) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// parent is the seed whose gardenlet deploys that of a ManagedSeed: gardener-apiserver labels it with the seed of its shoot. It is empty if that has none, or moves.
func parent(managed *seedmanagementv1alpha1.ManagedSeed) string {
	var found []string
	for key, value := range managed.Labels {
		if name, ok := strings.CutPrefix(key, constants.PrefixSeedName); ok && value == "true" {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// imageOf is the image of the gardenlet of a ManagedSeed. It may be nil.
func imageOf(managed *seedmanagementv1alpha1.ManagedSeed) *seedmanagementv1alpha1.Image {
	if managed.Spec.Gardenlet.Deployment == nil {
		return nil
	}
	return managed.Spec.Gardenlet.Deployment.Image
}

// gardenlet returns the gardenlet of an object, with the seeds that depend on it.
func (l *landscape) gardenlet(object client.Object) Gardenlet {
	g := Gardenlet{Seed: object.GetName(), Version: version(l.seeds[object.GetName()]), object: object}
	seen := map[string]bool{g.Seed: true} // labels could name a seed its own parent
	var follow func(seed string)
	follow = func(seed string) {
		for _, child := range l.children(seed) {
			switch {
			case seen[child.Name]:
				continue
			case pinned(imageOf(child)):
				g.affected = append(g.affected, child.Name)
			default:
				g.Followers = append(g.Followers, child.Name)
			}
			seen[child.Name] = true
			if !pinned(imageOf(child)) {
				follow(child.Name)
			}
		}
	}
	follow(g.Seed)
	slices.Sort(g.Followers)
	return g
}

// version is what the gardenlet of a seed has reported. It may be empty.
func version(seed *corev1beta1.Seed) string {
	if seed == nil || seed.Status.Gardener == nil {
		return ""
	}
	return seed.Status.Gardener.Version
}

// state says how far the upgrade of a gardenlet is.
type state int

const (
	done state = iota
	// begun is from the change of its object until its wave has passed.
	begun
	// todo is when it can begin.
	todo
	// held is when it cannot, and only an operator can change that.
	held
	// follows is when it depends on the gardenlet of another seed.
	follows
)

// plan returns what is left to do. The version of the garden may be nil.
func plan(l *landscape, s Selection, garden *semver.Version) (*Plan, error) {
	if garden != nil {
		if err := skew.Agent(garden, s.Target.version); err != nil {
			return nil, err
		}
	}
	p := &Plan{}
	var next, running []Gardenlet
	following := map[string]string{} // parents
	states := map[string]state{}
	for name, seed := range l.seeds {
		if !s.Seeds.Matches(labels.Set(seed.Labels)) {
			continue
		}
		where, reason := l.state(name, s.Target)
		states[name] = where
		switch where {
		case done:
			p.Done = append(p.Done, name)
		case begun:
			running = append(running, l.gardenlet(l.object(name)))
		case todo:
			next = append(next, l.gardenlet(l.object(name)))
		case held:
			p.Held = append(p.Held, Held{name, reason})
		case follows:
			following[name] = parent(l.managedSeeds[name])
		}
	}
	upgraded := map[string]bool{} // seeds that have the version after all waves
	for _, g := range slices.Concat(running, next) {
		if object, ok := g.object.(*seedmanagementv1alpha1.Gardenlet); ok && s.Target.keeps(object) {
			p.Kept = append(p.Kept, g.Seed)
		}
		upgraded[g.Seed] = true
		for _, follower := range g.Followers {
			upgraded[follower] = true
		}
	}
	for name, parent := range following {
		if !upgraded[name] {
			p.Held = append(p.Held, Held{name, fmt.Sprintf("its gardenlet follows that of seed %q, which is not upgraded now", parent)})
		}
	}
	// The chart of a ManagedSeed is that of its parent, so an image must not be newer.
	next = slices.DeleteFunc(next, func(g Gardenlet) bool {
		managed, ok := g.object.(*seedmanagementv1alpha1.ManagedSeed)
		if !ok || upgraded[parent(managed)] || s.Target.reported(version(l.seeds[parent(managed)])) {
			return false
		}
		p.Held = append(p.Held, Held{g.Seed, fmt.Sprintf("the gardenlet of seed %q deploys it, and is not upgraded now", parent(managed))})
		return true
	})
	if err := s.check(states, following); err != nil {
		return nil, err
	}
	slices.Sort(p.Done)
	slices.Sort(p.Kept)
	slices.SortFunc(p.Held, func(a, b Held) int { return strings.Compare(a.Seed, b.Seed) })
	if len(running) > 0 {
		slices.SortFunc(running, func(a, b Gardenlet) int { return strings.Compare(a.Seed, b.Seed) })
		p.Waves = append(p.Waves, Wave{Begun: true, Gardenlets: running})
	}
	p.Waves = append(p.Waves, l.waves(next, s)...)
	return p, nil
}

// waves orders gardenlets: those that an upgrade to another version has broken first, then canaries, then by their names, and those of ManagedSeeds in a later
// wave than those that deploy them.
func (l *landscape) waves(next []Gardenlet, s Selection) []Wave {
	order := func(g Gardenlet) int {
		switch {
		case marked(g.object).Version != "":
			return 0
		case slices.Contains(s.Canaries, g.Seed):
			return 1
		}
		return 2
	}
	slices.SortFunc(next, func(a, b Gardenlet) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(l.depth(a.Seed), l.depth(b.Seed)), strings.Compare(a.Seed, b.Seed))
	})
	var waves []Wave
	var wave Wave
	end := func() {
		if len(wave.Gardenlets) > 0 {
			waves = append(waves, wave)
		}
		wave = Wave{}
	}
	for i, g := range next {
		full := order(g) != 1 && len(wave.Gardenlets) >= s.Size
		afterCanaries := i > 0 && order(next[i-1]) < order(g)
		deployed := slices.ContainsFunc(wave.Gardenlets, func(other Gardenlet) bool { return slices.Contains(other.seeds(), g.Seed) })
		if full || afterCanaries || deployed {
			end()
		}
		wave.Gardenlets = append(wave.Gardenlets, g)
	}
	end()
	return waves
}

// depth is how many ManagedSeeds lead to a seed.
func (l *landscape) depth(seed string) int {
	for depth := range len(l.managedSeeds) {
		managed := l.managedSeeds[seed]
		if managed == nil || l.gardenlets[seed] != nil {
			return depth
		}
		seed = parent(managed)
	}
	return len(l.managedSeeds)
}

// check returns an error if the selection names seeds for which it makes no sense.
func (s Selection) check(states map[string]state, following map[string]string) error {
	for _, name := range s.Canaries {
		switch where, selected := states[name]; {
		case !selected:
			return fmt.Errorf("canary %q is not among the selected seeds", name)
		case where == follows:
			return fmt.Errorf("canary %q: its gardenlet follows that of seed %q, so name that one", name, following[name])
		case where == held:
			return fmt.Errorf("canary %q cannot be upgraded; see the plan without it", name)
		}
	}
	for _, name := range s.Accepted {
		if where, selected := states[name]; !selected || where == todo || where == held {
			return fmt.Errorf("seed %q cannot be accepted as it is, because its upgrade has not begun", name)
		}
	}
	return nil
}

// object has the version of the gardenlet of a seed. It is nil if there is none.
func (l *landscape) object(name string) client.Object {
	if g := l.gardenlets[name]; g != nil {
		return g
	}
	if m := l.managedSeeds[name]; m != nil {
		return m
	}
	return nil
}

// state returns how far the upgrade of a seed is, and why it is held.
func (l *landscape) state(name string, target Target) (where state, reason string) {
	seed, object := l.seeds[name], l.object(name)
	atTarget := target.reported(version(seed))
	switch {
	case object == nil && atTarget:
		return done, ""
	case object == nil:
		return held, "it has neither a Gardenlet nor a ManagedSeed: upgrade its gardenlet as it was deployed"
	}
	if managed, ok := object.(*seedmanagementv1alpha1.ManagedSeed); ok && !pinned(imageOf(managed)) {
		switch above := parent(managed); {
		case atTarget && !l.upgrading(above, target):
			return done, ""
		case above == "":
			return held, "the shoot of its ManagedSeed is on no seed, or moves to another one"
		}
		return follows, ""
	}
	changed, err := target.apply(object)
	switch {
	case err != nil:
		return held, err.Error()
	case marked(object).Version == target.String() && changed == nil:
		return begun, ""
	case changed == nil && atTarget && marked(object).Version == "":
		return done, ""
	}
	if err := holds(object, seed, target); err != nil {
		return held, err.Error()
	}
	if changed == nil {
		return begun, "" // another tool has changed it
	}
	return todo, ""
}

// upgrading says whether the gardenlet of a seed, or one that it follows, is in a wave that has not passed.
func (l *landscape) upgrading(seed string, target Target) bool {
	for range len(l.managedSeeds) + 1 {
		object := l.object(seed)
		if object == nil {
			return false
		}
		if marked(object).Version == target.String() {
			return true
		}
		managed, ok := object.(*seedmanagementv1alpha1.ManagedSeed)
		if !ok {
			return false
		}
		seed = parent(managed)
	}
	return false
}

// holds returns why the upgrade of a gardenlet cannot begin.
func holds(object client.Object, seed *corev1beta1.Seed, target Target) error {
	gardenlet, isGardenlet := object.(*seedmanagementv1alpha1.Gardenlet)
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	switch {
	case object.GetDeletionTimestamp() != nil || seed.DeletionTimestamp != nil:
		return errors.New("it is being deleted")
	case isGardenlet && gardenlet.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet] != "":
		return fmt.Errorf("its gardenlet has created the Gardenlet: check it, and remove the annotation %s", seedmanagementv1alpha1.AnnotationCreatedByGardenlet)
	case isGardenlet && gardenlet.Labels[operatorv1alpha1.LabelKeyGardenletAutoUpdates] == "true":
		return fmt.Errorf("its chart follows gardener-operator: remove the label %s from the Gardenlet to upgrade it here", operatorv1alpha1.LabelKeyGardenletAutoUpdates)
	case marked(object).Version == "" && (ready == nil || ready.Status != corev1beta1.ConditionTrue):
		return fmt.Errorf("its condition %s is not True, so its gardenlet would not upgrade itself: repair it first", corev1beta1.SeedGardenletReady)
	}
	if last, err := skew.Parse(version(seed)); err == nil {
		return skew.Replace(last, target.version)
	}
	return nil
}

// apply returns a changed copy of an object, or nil if it is as the target says.
func (t Target) apply(object client.Object) (client.Object, error) {
	switch o := object.(type) {
	case *seedmanagementv1alpha1.Gardenlet:
		after := o.DeepCopy()
		if err := t.deployment(after); err != nil {
			return nil, err
		}
		if equal(o.Spec.Deployment, after.Spec.Deployment) {
			return nil, nil
		}
		return after, nil
	case *seedmanagementv1alpha1.ManagedSeed:
		after := o.DeepCopy()
		if err := t.image(imageOf(after)); err != nil {
			return nil, err
		}
		if equal(*imageOf(o), *imageOf(after)) {
			return nil, nil
		}
		return after, nil
	}
	return nil, fmt.Errorf("%T has no version of a gardenlet", object)
}
