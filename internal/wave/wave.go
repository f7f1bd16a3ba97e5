// Package wave upgrades the gardenlets of many seeds, some at a time, and stops when seeds or their shoots become worse: Upgrade for gardenctl, and Following for
// gardener-operator.
//
// It reads Seeds, Gardenlets, ManagedSeeds, the metadata of Shoots, and the version of the garden; it changes the chart and the image vector overwrites in Gardenlets,
// the image in ManagedSeeds that name one, and an annotation on both. What is left to do follows from these objects only, so that a run can end at any time, and another one
// continues, also on another computer.
package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/skew"
)

// requestTimeout is how long the few requests of one step may take.
const requestTimeout = 30 * time.Second

// Upgrade is a run.
type Upgrade struct {
	// Client reads from the garden without a cache.
	Client client.WithWatch
	// Selection says which gardenlets are upgraded.
	Selection Selection
	// Soak is how long all seeds of a wave have to stay as healthy as they were before.
	Soak time.Duration
	// Tolerated is how many percent of the shoots of a seed may become unhealthy: on a seed with many, some do without an upgrade.
	Tolerated int
	// Timeout is how long a wave may take, with Soak.
	Timeout time.Duration
	// Clock is the source of the current time.
	Clock clock.PassiveClock
	// Report is called with what happens to the gardenlet of a seed.
	Report func(seed, text string)
}

// Stopped is why a wave did not pass.
type Stopped struct {
	// Seeds have the reasons, by the names of the seeds of the gardenlets.
	Seeds map[string]error
	// After is how long the wave has waited. Zero if waiting does not help.
	After time.Duration
}

// Error implements error.
func (s *Stopped) Error() string {
	reasons := make([]string, 0, len(s.Seeds))
	for _, name := range slices.Sorted(maps.Keys(s.Seeds)) {
		reasons = append(reasons, fmt.Sprintf("seed %q: %s", name, s.Seeds[name]))
	}
	text := strings.Join(reasons, "; ")
	if s.After > 0 {
		text = fmt.Sprintf("waited %s for %s", s.After, text)
	}
	return text
}

// Plan returns what is left to do. It writes nothing.
func (u *Upgrade) Plan(ctx context.Context) (*Plan, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no response within %s", requestTimeout))
	defer cancel()
	garden, warning, err := u.gardenVersion(ctx)
	if err != nil {
		return nil, err
	}
	l, err := read(ctx, u.Client)
	if err != nil {
		return nil, err
	}
	p, err := plan(l, u.Selection, garden)
	if err != nil {
		return nil, err
	}
	p.Warning = warning
	return p, nil
}

// gardenVersion returns the version of the garden, and what should be known about it. The version is nil if the garden does not say it.
func (u *Upgrade) gardenVersion(ctx context.Context) (garden *semver.Version, warning string, err error) {
	garden, err = gardenerinfo.Version(ctx, u.Client)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("it is not checked whether the garden is too old for the new gardenlets: %s", err), nil
	} else if err != nil {
		return nil, "", err
	}
	if late := skew.Late(garden, u.Selection.Target.version); late != nil {
		warning = late.Error()
	}
	return garden, warning, nil
}

// Run upgrades the gardenlets wave by wave, and returns the seeds that are held. It starts no wave before the one before has passed: otherwise the error
// is a *Stopped.
func (u *Upgrade) Run(ctx context.Context) ([]Held, error) {
	passed := map[string]bool{}
	for number := 1; ; number++ {
		plan, err := u.Plan(ctx)
		if err != nil {
			return nil, err
		}
		if len(plan.Waves) == 0 {
			return plan.Held, nil
		}
		wave := plan.Waves[0]
		reverted := map[string]error{}
		for _, g := range wave.Gardenlets {
			if passed[g.Seed] {
				reverted[g.Seed] = fmt.Errorf("its %s was changed back after the upgrade: set the version in what has changed it, too", kindOf(g.object))
			}
			passed[g.Seed] = true
		}
		if len(reverted) > 0 {
			return nil, &Stopped{Seeds: reverted}
		}
		if err := u.run(ctx, number, wave); err != nil {
			return nil, err
		}
	}
}

// run upgrades the gardenlets of a wave, and waits until it has passed.
func (u *Upgrade) run(ctx context.Context, number int, wave Wave) error {
	watching, cancel := context.WithTimeoutCause(ctx, u.Timeout, errTimeout)
	defer cancel()
	w, wait, err := watch(watching, u.Client, seedsOf(wave.Gardenlets))
	if err != nil {
		return fmt.Errorf("watch seeds and shoots: %w", err)
	}
	defer wait()
	defer cancel() // before wait
	generations := map[string]int64{}
	for _, g := range wave.Gardenlets {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if generations[g.Seed], err = u.begin(ctx, w.read(), g); err != nil {
			return err
		}
		u.Report(g.Seed, fmt.Sprintf("wave %d: requested version %s", number, u.Selection.Target))
	}
	if err := u.await(watching, w, wave, generations); err != nil {
		return err
	}
	for _, g := range wave.Gardenlets {
		if err := u.end(ctx, w.read().object(g.Seed)); err != nil {
			return err
		}
		u.Report(g.Seed, fmt.Sprintf("wave %d: passed", number))
	}
	return nil
}

var errTimeout = errors.New("timed out")

// await waits until a wave has passed, and all its seeds stay so for a while.
func (u *Upgrade) await(ctx context.Context, w *watcher, wave Wave, generations map[string]int64) error {
	soaked := time.NewTimer(u.Soak)
	defer soaked.Stop()
	reported := map[string]string{}
	soaking, fresh := false, false
	for v := w.read(); ; {
		missing, err := u.missing(v, wave, generations, reported)
		switch {
		case err != nil:
			return err
		case len(missing) > 0:
			soaking = false
		case fresh && soaking:
			return nil
		case !soaking:
			soaking = true
			soaked.Reset(u.Soak)
		}
		fresh = false
		select {
		case <-w.changed:
			v = w.read()
		case <-soaked.C:
			if !soaking {
				continue
			}
			// The watch may be behind, and the next wave begins with what this decides.
			if v, err = w.fresh(ctx); err != nil {
				return fmt.Errorf("read seeds and shoots: %w", err)
			}
			fresh = true
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errTimeout) {
				return context.Cause(ctx)
			}
			if len(missing) == 0 {
				return fmt.Errorf("the wave is healthy, but %s are too short to see it stay so for %s: allow more time", u.Timeout, u.Soak)
			}
			return &Stopped{Seeds: missing, After: u.Timeout}
		}
	}
}

// missing returns what the gardenlets of a wave lack, by their seeds, and reports what is not yet in reported. The error is a *Stopped if waiting does not help.
func (u *Upgrade) missing(v *view, wave Wave, generations map[string]int64, reported map[string]string) (map[string]error, error) {
	missing, lost := map[string]error{}, map[string]error{}
	for _, g := range wave.Gardenlets {
		text, reason := "as healthy as before", v.missing(g, u.Selection.Target, generations[g.Seed], u.Tolerated)
		if reason != nil {
			missing[g.Seed], text = reason, reason.Error()
		}
		if reason := (*broken)(nil); errors.As(missing[g.Seed], &reason) {
			lost[g.Seed] = reason
		}
		if reported[g.Seed] != text {
			reported[g.Seed] = text
			u.Report(g.Seed, text)
		}
	}
	if len(lost) > 0 {
		return nil, &Stopped{Seeds: lost}
	}
	return missing, nil
}

// begin changes the object of a gardenlet, unless a former run has. It returns its generation. The write is finished even if ctx is done meanwhile.
func (u *Upgrade) begin(ctx context.Context, v *view, g Gardenlet) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	current := g.object
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, _ = g.object.DeepCopyObject().(client.Object) // a copy has its original's type
		if err := u.Client.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return err
		}
		after, err := u.changed(v, g, current)
		if err != nil || equal(current, after) {
			return err
		}
		if err := u.Client.Patch(ctx, after, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		current = after
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("change %s %q: %w", kindOf(g.object), g.Seed, err)
	}
	return current.GetGeneration(), nil
}

// changed returns the object of a gardenlet with the version, and the mark.
func (u *Upgrade) changed(v *view, g Gardenlet, current client.Object) (client.Object, error) {
	target := u.Selection.Target
	after, err := target.apply(current)
	if err != nil {
		return nil, err
	}
	if after == nil {
		after, _ = current.DeepCopyObject().(client.Object)
		// A run that is repeated tries it once more.
		if failed := (*broken)(nil); errors.As(deployed(current), &failed) {
			setAnnotation(after, constants.GardenerOperation, constants.GardenerOperationReconcile)
		}
	}
	m, former := mark{Version: target.String(), Seeds: map[string]health{}}, marked(current).Seeds
	for _, name := range g.seeds() {
		// What a former upgrade has broken is not how it was before.
		before, known := former[name]
		if !known || slices.Contains(u.Selection.Accepted, name) {
			before = healthOf(v.seeds[name], v.shoots[name], u.Clock.Now())
		}
		m.Seeds[name] = before
	}
	value, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	setAnnotation(after, Annotation, string(value))
	return after, nil
}

func setAnnotation(object client.Object, key, value string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// end removes the mark: the wave has passed. The object may be nil.
func (u *Upgrade) end(ctx context.Context, object client.Object) error {
	if object == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := kube.PatchMetadata(ctx, u.Client, object, func(o *metav1.PartialObjectMetadata) { delete(o.Annotations, Annotation) })
	return client.IgnoreNotFound(err)
}
