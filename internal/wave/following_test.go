package wave

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

func autoUpdated(g *seedmanagementv1alpha1.Gardenlet) {
	g.Labels = map[string]string{operatorv1alpha1.LabelKeyGardenletAutoUpdates: "true"}
}

// followed is a garden whose Gardenlets follow gardener-operator.
type followed struct {
	client.WithWatch
	*Following
	clock *testingclock.FakePassiveClock
}

func newFollowed(t *testing.T, fixtures ...fixture) followed {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1beta1.AddToScheme(scheme), seedmanagementv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l := landscapeOf(fixtures...)
	b := fake.NewClientBuilder().WithScheme(scheme)
	for name, seed := range l.seeds {
		b.WithObjects(seed, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-dev", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels: map[string]string{constants.PrefixSeedName + name: "true", constants.ShootStatus: "healthy"},
		}})
	}
	for _, g := range l.gardenlets {
		b.WithObjects(g)
	}
	for _, m := range l.managedSeeds {
		b.WithObjects(m)
	}
	c, clock := b.Build(), testingclock.NewFakePassiveClock(now)
	return followed{c, &Following{Client: c, Target: FollowingTarget(latest, chart+latest, Overwrites{}), Soak: 5 * time.Minute, Clock: clock}, clock}
}

// at returns the seeds whose Gardenlets have the version, and in which the wave has not passed.
func (f followed) at(t *testing.T, version string) (at, marks string) {
	t.Helper()
	list := &seedmanagementv1alpha1.GardenletList{}
	if err := f.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var have, begun []string
	for i := range list.Items {
		g := &list.Items[i]
		if ref := g.Spec.Deployment.Helm.OCIRepository.Ref; ref != nil && *ref == chart+version {
			have = append(have, g.Name)
		}
		if g.Annotations[Annotation] != "" {
			begun = append(begun, g.Name)
		}
	}
	slices.Sort(have)
	return strings.Join(have, " "), strings.Join(begun, " ")
}

func (f followed) step(t *testing.T) Step {
	t.Helper()
	step, err := f.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// pass makes a step each minute until so long after the beginning, which is the last one.
func (f followed) pass(t *testing.T, until time.Duration) Step {
	t.Helper()
	for next := f.clock.Now().Add(recheck); next.Before(now.Add(until)); next = next.Add(recheck) {
		f.clock.SetTime(next)
		f.step(t)
	}
	f.clock.SetTime(now.Add(until))
	return f.step(t)
}

// report has gardenlets report the version.
func (f followed) report(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		seed := &corev1beta1.Seed{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: name}, seed); err != nil {
			t.Fatal(err)
		}
		seed.Status.Gardener.Version = latest
		if err := f.Update(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
}

func (f followed) label(t *testing.T, name, value string) {
	t.Helper()
	shoot := &corev1beta1.Shoot{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "garden-dev", Name: name}, shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Labels[constants.ShootStatus] = value
	if err := f.Update(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
}

// One gardenlet is first, and no other one gets the chart before its seed and the shoots on it have been healthy for the whole time.
func TestFollowingStep(t *testing.T) {
	var fixtures []fixture
	for _, name := range strings.Fields("a b c d e f g h i j k") {
		fixtures = append(fixtures, own(name, former, former, autoUpdated))
	}
	f := newFollowed(t, append(fixtures, own("other", former, former))...)
	expect := func(when, wantAt, wantMarks string) {
		t.Helper()
		if at, marks := f.at(t, latest); at != wantAt || marks != wantMarks {
			t.Errorf("%s: %q have the chart, and %q the annotation; want %q and %q", when, at, marks, wantAt, wantMarks)
		}
	}
	step := f.step(t)
	expect("first wave", "a", "a")
	if diff := cmp.Diff([]string{"a"}, step.Begun); diff != "" || step.After != recheck {
		t.Errorf("the first step: %+v", step)
	}
	if step = f.step(t); step.Missing["a"] == nil || step.Hopeless() {
		t.Errorf("nothing is missing before it reports the version: %+v", step)
	}
	f.report(t, "a")
	f.label(t, "a", "unhealthy")
	if step = f.step(t); step.Missing["a"] == nil || !strings.Contains(step.Missing["a"].Error(), "0 of 1 shoots are healthy") {
		t.Errorf("the shoot is not missed: %+v", step)
	}
	f.label(t, "a", "healthy")
	if step = f.step(t); len(step.Missing) > 0 || step.After != recheck {
		t.Errorf("it does not wait: %+v", step)
	}
	if step = f.pass(t, 4*time.Minute+30*time.Second); step.After != 30*time.Second || !step.Since.Equal(now.Truncate(time.Second)) {
		t.Errorf("it waits until another time: %+v", step)
	}
	expect("not long enough", "a", "a")
	f.pass(t, 5*time.Minute)
	expect("second wave", "a b c", "b c") // a tenth of eleven
	f.report(t, "b", "c")
	f.step(t)
	f.label(t, "c", "unhealthy")
	f.clock.SetTime(now.Add(20 * time.Minute))
	f.step(t)
	expect("a break", "a b c", "b c")
	f.label(t, "c", "healthy")
	f.step(t)
	f.pass(t, 24*time.Minute)
	expect("the time begins again", "a b c", "b c")
	f.pass(t, 25*time.Minute)
	expect("third wave", "a b c d e", "d e")
	// Another process continues.
	f.Following = &Following{Client: f.Client, Target: f.Target, Soak: f.Soak, Clock: f.clock}
	f.report(t, "d", "e")
	f.step(t)
	f.pass(t, 30*time.Minute)
	expect("fourth wave", "a b c d e f g", "f g")
	// Minutes without a step do not count: nothing has seen the seeds.
	f.report(t, "f", "g")
	f.step(t)
	f.clock.SetTime(now.Add(40 * time.Minute))
	f.step(t)
	expect("not observed", "a b c d e f g", "f g")
	f.pass(t, 44*time.Minute)
	expect("not observed for long enough", "a b c d e f g", "f g")
	f.pass(t, 45*time.Minute)
	expect("fifth wave", "a b c d e f g h i", "h i")
}

// Gardenlets that were left behind by more than a minor version are named, while they wait for a wave and when they cannot be updated.
func TestFollowingLate(t *testing.T) {
	f := newFollowed(t, own("a", former, former, autoUpdated), own("b", "v1.149.3", "v1.149.3", autoUpdated), own("c", "v1.148.0", "v1.148.0", autoUpdated),
		own("d", "v1.148.0", "v1.148.0"))
	step := f.step(t)
	if diff := cmp.Diff([]string{"b", "c"}, step.Late); diff != "" || step.Followers != 3 {
		t.Errorf("of %d followers, late ones (-want +got):\n%s", step.Followers, diff)
	}
}

// notReadySince is a seed whose gardenlet has not reported for some time.
func notReadySince(at time.Time) fixture {
	return func(l *landscape) {
		own("a", former, former, autoUpdated)(l)
		l.seeds["a"].Status.Conditions[0].Status, l.seeds["a"].Status.Conditions[0].LastTransitionTime = corev1beta1.ConditionUnknown, metav1.NewTime(at)
	}
}

// What has no health to compare with, or no version to wait for, gets the chart at once, and keeps the Secrets that the chart is pulled with.
func TestFollowingAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		fixture fixture
		version string
		want    string // has the chart
		marks   string
	}{
		"in a wave":          {fixture: own("a", former, former, autoUpdated), want: "a", marks: "a"},
		"no Seed":            {fixture: func(l *landscape) { own("a", former, former, autoUpdated)(l); delete(l.seeds, "a") }, want: "a"},
		"never ready":        {fixture: func(l *landscape) { own("a", former, former, autoUpdated)(l); unready("a")(l) }, want: "a"},
		"not ready for long": {fixture: notReadySince(now.Add(-settled)), want: "a"},
		"not ready since the garden was upgraded": {fixture: notReadySince(now.Add(-time.Minute))},
		"no version": {fixture: own("a", former, former, autoUpdated), version: "main", want: "a"},
		"created by its gardenlet": {
			fixture: own("a", former, former, autoUpdated, func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Annotations = map[string]string{seedmanagementv1alpha1.AnnotationCreatedByGardenlet: "true"}
			}), want: "a",
		},
		"does not follow": {fixture: own("a", former, former)},
		"is current":      {fixture: own("a", latest, latest, autoUpdated), want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollowed(t, tc.fixture)
			if tc.version != "" {
				f.Target = FollowingTarget(tc.version, chart+latest, Overwrites{})
			}
			f.step(t)
			if at, marks := f.at(t, latest); at != tc.want || marks != tc.marks {
				t.Errorf("%q have the chart, and %q are in a wave; want %q and %q", at, marks, tc.want, tc.marks)
			}
		})
	}
}

// A gardenlet that was rolled back keeps others from the chart, until another release repairs it: that one is first.
func TestFollowingRolledBack(t *testing.T) {
	f := newFollowed(t, own("a", former, former, autoUpdated), own("b", former, former, autoUpdated))
	f.step(t)
	g := &seedmanagementv1alpha1.Gardenlet{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "a"}, g); err != nil {
		t.Fatal(err)
	}
	g.Status.Conditions[0].Status, g.Status.Conditions[0].Reason = corev1beta1.ConditionFalse, seedmanagementv1alpha1.GardenletReasonRolledBack
	if err := f.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	f.clock.SetTime(now.Add(time.Hour))
	if step := f.step(t); !step.Hopeless() || step.After != recheck {
		t.Errorf("it goes on: %+v", step)
	}
	if at, _ := f.at(t, latest); at != "a" {
		t.Errorf("%q have the chart", at)
	}
	const repaired = "v1.151.1"
	f.Target = FollowingTarget(repaired, chart+repaired, Overwrites{})
	f.step(t)
	if at, marks := f.at(t, repaired); at != "a" || marks != "a" {
		t.Errorf("%q have the chart of the other release, and %q are in a wave", at, marks)
	}
}

// A Gardenlet with an image of its own gets no chart of another release, and is named. When both were changed, it is current.
func TestFollowingOwnImage(t *testing.T) {
	withImage := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Tag: new(former)}
	}
	f := newFollowed(t, own("a", former, former, autoUpdated, withImage), own("b", former, former, autoUpdated), own("c", latest, latest, autoUpdated, withImage),
		func(l *landscape) { own("d", former, former, autoUpdated, withImage)(l); delete(l.seeds, "d") })
	step := f.step(t)
	if diff := cmp.Diff([]string{"a", "d"}, step.OwnImage); diff != "" || step.Followers != 4 {
		t.Errorf("of %d followers, left out (-want +got):\n%s", step.Followers, diff)
	}
	if at, marks := f.at(t, latest); at != "b c" || marks != "b" {
		t.Errorf("%q have the chart, and %q are in a wave", at, marks)
	}
	// Also if only the overwrite is that of an earlier release, as gardener-operator has written it.
	f = newFollowed(t, own("a", latest, latest, autoUpdated, withImage, func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.ImageVectorOverwrite = new("of " + former)
		g.Annotations = map[string]string{AnnotationImages: workload.Checksum("of " + former)}
	}), own("b", latest, latest, autoUpdated, withImage, func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Deployment.ImageVectorOverwrite = new("its own") }))
	f.Target = FollowingTarget(latest, chart+latest, Overwrites{Images: new("of " + latest)})
	if diff := cmp.Diff([]string{"a"}, f.step(t).OwnImage); diff != "" {
		t.Errorf("with a former overwrite, left out (-want +got):\n%s", diff)
	}
	// Also if the image was added after all Gardenlets were read: it would get an empty tag.
	g := landscapeOf(own("a", former, former, autoUpdated, withImage)).gardenlets["a"]
	if after, err := f.Target.apply(g); err == nil {
		t.Errorf("its image becomes %v", after)
	}
}

// A chart comes with the image vector overwrite of its release: a gardenlet that kept the former one would deploy the former images.
func TestFollowingOverwrites(t *testing.T) {
	f := newFollowed(t, own("a", former, former, autoUpdated), own("b", former, former, autoUpdated, func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.ImageVectorOverwrite = new("its own")
	}), func(l *landscape) { own("c", former, former, autoUpdated)(l); delete(l.seeds, "c") })
	expect := func(when, name, want string) {
		t.Helper()
		g := &seedmanagementv1alpha1.Gardenlet{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: name}, g); err != nil {
			t.Fatal(err)
		}
		got := "none"
		if text := g.Spec.Deployment.ImageVectorOverwrite; text != nil {
			got = *text
		}
		if got != want {
			t.Errorf("%s: %q has the overwrite %q, want %q", when, name, got, want)
		}
	}
	f.Target = FollowingTarget(latest, chart+latest, Overwrites{Images: new("of " + latest), Components: new("")})
	step := f.step(t)
	if diff := cmp.Diff([]string{"a"}, step.Begun); diff != "" {
		t.Errorf("the first wave (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b"}, step.OwnOverwrite); diff != "" {
		t.Errorf("those with their own (-want +got):\n%s", diff)
	}
	expect("in a wave", "a", "of "+latest)
	expect("at once", "c", "of "+latest)
	expect("not begun", "b", "its own")
	f.report(t, "a")
	f.step(t)
	f.pass(t, 5*time.Minute)
	expect("its own stays", "b", "its own")
	if at, marks := f.at(t, latest); at != "a b c" || marks != "b" {
		t.Errorf("%q have the chart, and %q are in a wave", at, marks)
	}
	f.report(t, "b")
	f.step(t)
	f.pass(t, 15*time.Minute)
	if step := f.step(t); len(step.Wave) > 0 || !cmp.Equal(step.OwnOverwrite, []string{"b"}) {
		t.Fatalf("a steady state is changed: %+v", step)
	}
	// The same release with other images is a wave, too.
	f.Target = FollowingTarget(latest, chart+latest, Overwrites{Images: new("repaired"), Components: new("")})
	if step := f.step(t); !cmp.Equal(step.Begun, []string{"a"}) {
		t.Errorf("other images: %+v", step)
	}
	expect("other images", "a", "repaired")
	// Back to the release before, which needs none.
	f.Target = FollowingTarget(former, chart+former, Overwrites{Images: new(""), Components: new("")})
	f.step(t)
	expect("none", "a", "")
	expect("none", "c", "")
}
