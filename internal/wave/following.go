package wave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/skew"
)

const (
	// followingShare is which part of the Gardenlets that follow gardener-operator are in one wave. The first wave has one.
	followingShare = 10
	// followingTolerated is how many percent of the shoots of a seed may become unhealthy: on a seed with many, some do without an upgrade.
	followingTolerated = 1
	// recheck is when the shoots of a wave are read again. They are not watched, as a garden may have tens of thousands.
	recheck = time.Minute
	// settled is for how long a gardenlet has not been ready when that is its state: after an upgrade of the garden, many are not ready for a moment.
	settled = 10 * time.Minute
	// unobserved is how far apart two steps may be for the time between them to count for Soak. A step may take longer than recheck.
	unobserved = 3 * recheck
)

// Following upgrades the Gardenlets that follow gardener-operator. A process may end between two steps, or make none for a
// while; then the time of Soak begins again.
type Following struct {
	// Client reads from the garden without a cache.
	Client client.WithWatch
	// Target has the chart of the operator's release.
	Target Target
	// Soak is how long all seeds of a wave have to stay as healthy as they were before.
	Soak time.Duration
	// Clock is the source of the current time.
	Clock clock.PassiveClock

	// healthy is since when the seeds of the wave are as healthy as before. Zero if they are not.
	healthy time.Time
	// observed is when they were last seen so.
	observed time.Time
	// wave has the names of the gardenlets that healthy is about.
	wave string
}

// Step is what is seen and done in one step.
type Step struct {
	// Followers is how many Gardenlets follow gardener-operator.
	Followers int
	// Late are the seeds whose gardenlets follow it, and are older than the previous minor version.
	Late []string
	// OwnImage are the seeds whose Gardenlets follow it, have an image of their own, and not the chart: they are left out.
	OwnImage []string
	// OwnOverwrite are the seeds whose Gardenlets follow it, and keep an image vector overwrite of their own.
	OwnOverwrite []string
	// Begun are the seeds whose gardenlets were changed now.
	Begun []string
	// Wave are the seeds of the wave that has not passed. Empty if there is none.
	Wave []string
	// Since is when the wave has begun.
	Since time.Time
	// Missing are the reasons why it does not pass yet, by its seeds.
	Missing map[string]error
	// After is when to do the next step if nothing changes before. Zero means never.
	After time.Duration
}

// FollowingTarget is the chart of the operator's release, with the image vector overwrites of the operator. Without a version that can be compared, nothing waits
// for its gardenlets.
func FollowingTarget(version, ref string, overwrites Overwrites) Target {
	t := Target{ref: ref, overwrites: overwrites, follows: true}
	if parsed, err := skew.Parse(version); err == nil {
		t.version = parsed
	}
	return t
}

// groups are the Gardenlets that follow gardener-operator.
type groups struct {
	// running were changed, and their wave has not passed.
	running []Gardenlet
	// next wait for a wave.
	next []Gardenlet
	// atOnce get the chart without a wave, as there is no health to compare with, or no version to wait for.
	atOnce []*seedmanagementv1alpha1.Gardenlet
	// unsettled is how many have not been ready for a short time only.
	unsettled int
	// done is how many have passed.
	done int
	// all is how many there are, and late are the seeds of those that are older than the previous minor version.
	all  int
	late []string
	// ownImage are the seeds of those that have an image of their own, and not the chart, or an image vector overwrite that an earlier operator has written. Another
	// release's image does not work with it.
	ownImage []string
	// ownOverwrite are the seeds of those that keep an image vector overwrite of their own.
	ownOverwrite []string
}

// following returns the Gardenlets that follow gardener-operator.
func (l *landscape) following(target Target, now time.Time) groups {
	var g groups
	for name, object := range l.gardenlets {
		if object.Labels[operatorv1alpha1.LabelKeyGardenletAutoUpdates] != "true" || object.DeletionTimestamp != nil {
			continue
		}
		g.all++
		if target.leavesBehind(l.seeds[name]) {
			g.late = append(g.late, name)
		}
		if chart := object.Spec.Deployment.Helm.OCIRepository; pinned(object.Spec.Deployment.Image) {
			if !equal(chart, target.chart(chart)) || target.outdated(object) {
				g.ownImage = append(g.ownImage, name)
			}
			continue
		}
		if target.keeps(object) {
			g.ownOverwrite = append(g.ownOverwrite, name)
		}
		waits := target.version != nil && l.seeds[name] != nil && l.seeds[name].DeletionTimestamp == nil
		changed, err := target.apply(object)
		current := err == nil && changed == nil
		switch {
		case current && waits && marked(object).Version == target.String():
			g.running = append(g.running, l.gardenlet(object))
		case current && waits:
			g.done++
		case current:
		case !waits || !compares(object, l.seeds[name], now):
			g.atOnce = append(g.atOnce, object)
		case isReady(l.seeds[name]) || marked(object).Version != "":
			g.next = append(g.next, l.gardenlet(object))
		default:
			g.unsettled++
		}
	}
	slices.SortFunc(g.running, func(a, b Gardenlet) int { return strings.Compare(a.Seed, b.Seed) })
	slices.Sort(g.late)
	slices.Sort(g.ownImage)
	slices.Sort(g.ownOverwrite)
	return g
}

// leavesBehind says whether the gardenlet of a seed is older than the previous minor version. One that reports no version is not.
func (t Target) leavesBehind(seed *corev1beta1.Seed) bool {
	if t.version == nil || seed == nil {
		return false
	}
	own, err := skew.Parse(version(seed))
	return err == nil && skew.Late(t.version, own) != nil
}

// compares says whether the seed of a Gardenlet has something to compare with: its gardenlet runs, did a short time ago, or before an upgrade that has not
// passed.
func compares(object *seedmanagementv1alpha1.Gardenlet, seed *corev1beta1.Seed, now time.Time) bool {
	if _, unapproved := object.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet]; unapproved {
		return false
	}
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	return marked(object).Version != "" || ready != nil && (isReady(seed) || now.Sub(ready.LastTransitionTime.Time) < settled)
}

// isReady says whether the gardenlet of a seed runs.
func isReady(seed *corev1beta1.Seed) bool {
	ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
	return ready != nil && ready.Status == corev1beta1.ConditionTrue
}

// Step gives charts to the Gardenlets that need not wait, ends the wave if it has passed, and then begins the next one.
func (f *Following) Step(ctx context.Context) (Step, error) {
	l, err := read(ctx, f.Client)
	if err != nil {
		return Step{}, err
	}
	g := l.following(f.Target, f.Clock.Now())
	step, err := f.next(ctx, l, g)
	step.Followers, step.Late, step.OwnImage, step.OwnOverwrite = g.all, g.late, g.ownImage, g.ownOverwrite
	return step, err
}

func (f *Following) next(ctx context.Context, l *landscape, g groups) (Step, error) {
	var errs []error
	for _, object := range g.atOnce {
		// One whose gardenlet does not run may be the first victim of what the wave brings.
		if len(g.running) > 0 && l.seeds[object.Name] != nil {
			continue
		}
		errs = append(errs, f.setChart(ctx, object))
	}
	if err := errors.Join(errs...); err != nil {
		return Step{}, err
	}
	u := &Upgrade{Client: f.Client, Selection: Selection{Target: f.Target}, Clock: f.Clock}
	if len(g.running) > 0 {
		step, err := f.check(ctx, l, g.running)
		if err != nil || step.After > 0 {
			return step, err
		}
		for _, gardenlet := range g.running {
			if err := u.end(ctx, gardenlet.object); err != nil {
				return Step{}, err
			}
		}
	}
	return f.begin(ctx, u, l, g)
}

// check returns whether a wave has passed: then the step has no time.
func (f *Following) check(ctx context.Context, l *landscape, running []Gardenlet) (Step, error) {
	v, err := l.withShoots(ctx, f.Client, seedsOf(running))
	if err != nil {
		return Step{}, err
	}
	now := f.Clock.Now()
	step := Step{Since: now, Missing: map[string]error{}}
	for _, g := range running {
		step.Wave = append(step.Wave, g.Seed)
		if reason := v.missing(g, f.Target, 0, followingTolerated); reason != nil {
			step.Missing[g.Seed] = reason
		}
		for _, was := range marked(g.object).Seeds {
			if was.At.Time.Before(step.Since) {
				step.Since = was.At.Time
			}
		}
	}
	wave := strings.Join(step.Wave, ",")
	switch {
	case len(step.Missing) > 0:
		f.healthy, step.After = time.Time{}, recheck
		return step, nil
	case f.healthy.IsZero() || f.wave != wave || now.Sub(f.observed) > unobserved:
		f.healthy, f.wave = now, wave
	}
	f.observed = now
	step.After = max(0, min(f.healthy.Add(f.Soak).Sub(now), recheck))
	return step, nil
}

// begin begins the next wave, if there is one.
func (f *Following) begin(ctx context.Context, u *Upgrade, l *landscape, g groups) (Step, error) {
	f.healthy = time.Time{}
	switch {
	case len(g.next) == 0 && g.unsettled > 0:
		return Step{After: recheck}, nil
	case len(g.next) == 0:
		return Step{}, nil
	}
	size := 1 // of the first one
	if all := g.done + len(g.running) + len(g.next); all > len(g.next) {
		size = (all + followingShare - 1) / followingShare
	}
	wave := l.waves(g.next, Selection{Size: size})[0]
	v, err := l.withShoots(ctx, f.Client, seedsOf(wave.Gardenlets))
	if err != nil {
		return Step{}, err
	}
	step := Step{Since: f.Clock.Now(), After: recheck}
	for _, gardenlet := range wave.Gardenlets {
		if _, err := u.begin(ctx, v, gardenlet); err != nil {
			return step, err
		}
		step.Begun, step.Wave = append(step.Begun, gardenlet.Seed), append(step.Wave, gardenlet.Seed)
	}
	return step, nil
}

// setChart gives a Gardenlet the chart, and what belongs to it.
func (f *Following) setChart(ctx context.Context, before *seedmanagementv1alpha1.Gardenlet) error {
	after, err := f.Target.apply(before)
	if err != nil || after == nil {
		return err
	}
	// What it has of its own must not be lost.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := f.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("update the chart of Gardenlet %q: %w", before.Name, err)
	}
	return nil
}

// Hopeless says whether a gardenlet of the wave is lost for good: waiting does not help.
func (s Step) Hopeless() bool {
	for _, reason := range s.Missing {
		if lost := (*broken)(nil); errors.As(reason, &lost) {
			return true
		}
	}
	return false
}
