package wave

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

const (
	former = "v1.150.3"
	latest = "v1.151.0"
	chart  = "registry.example.com/charts/gardenlet:"
)

// fixture changes a landscape.
type fixture func(*landscape)

func landscapeOf(fixtures ...fixture) *landscape {
	l := &landscape{
		seeds: map[string]*corev1beta1.Seed{}, gardenlets: map[string]*seedmanagementv1alpha1.Gardenlet{}, managedSeeds: map[string]*seedmanagementv1alpha1.ManagedSeed{},
	}
	for _, change := range fixtures {
		change(l)
	}
	return l
}

// seed is a ready Seed whose gardenlet reports a version.
func seed(name, version string) fixture {
	return func(l *landscape) {
		l.seeds[name] = &corev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
			Status: corev1beta1.SeedStatus{
				Gardener:   &corev1beta1.Gardener{Version: version},
				Conditions: []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}},
			},
		}
	}
}

// own is a seed with a Gardenlet that requests one version and reports another.
func own(name, requested, reported string, changes ...func(*seedmanagementv1alpha1.Gardenlet)) fixture {
	return func(l *landscape) {
		seed(name, reported)(l)
		g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Generation: 2}}
		g.Spec.Deployment.Helm.OCIRepository = gardencorev1.OCIRepository{Ref: new(chart + requested)}
		g.Status = seedmanagementv1alpha1.GardenletStatus{ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{
			Type: seedmanagementv1alpha1.GardenletReconciled, Status: corev1beta1.ConditionTrue, Reason: "Reconciled",
		}}}
		for _, change := range changes {
			change(g)
		}
		l.gardenlets[name] = g
	}
}

// managed is a seed that is a shoot of another one. The version of its image may be empty.
func managed(name, parent, image, reported string, changes ...func(*seedmanagementv1alpha1.ManagedSeed)) fixture {
	return func(l *landscape) {
		seed(name, reported)(l)
		m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		if parent != "" {
			m.Labels = map[string]string{constants.PrefixSeedName + parent: "true"}
		}
		if image != "" {
			m.Spec.Gardenlet.Deployment = &seedmanagementv1alpha1.GardenletDeployment{Image: &seedmanagementv1alpha1.Image{Tag: &image}}
		}
		m.Status.Conditions = []corev1beta1.Condition{{Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: corev1beta1.ConditionTrue}}
		for _, change := range changes {
			change(m)
		}
		l.managedSeeds[name] = m
	}
}

func setMark(object client.Object, version string, before map[string]health) {
	raw, _ := json.Marshal(mark{Version: version, Seeds: before})
	setAnnotation(object, Annotation, string(raw))
}

func begunFor(version string) func(*seedmanagementv1alpha1.Gardenlet) {
	return func(g *seedmanagementv1alpha1.Gardenlet) { setMark(g, version, nil) }
}

// unready has the gardenlet of a seed not report.
func unready(name string) fixture {
	return func(l *landscape) { l.seeds[name].Status.Conditions = nil }
}

func TestPlan(t *testing.T) {
	annotated := func(key string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) { setAnnotation(g, key, "true") }
	}
	for name, tc := range map[string]struct {
		landscape *landscape
		selection Selection // the size is 2 unless set
		garden    string    // latest unless set
		want      string    // waves, "done:" and "held:"
		err       string
	}{
		"waves by name": {
			landscape: landscapeOf(own("c", former, former), own("a", former, former), own("b", former, former)),
			want:      "a b | c",
		},
		"canaries first, whatever the size": {
			landscape: landscapeOf(own("a", former, former), own("b", former, former), own("c", former, former), own("d", former, former)),
			selection: Selection{Canaries: []string{"d", "c", "b"}},
			want:      "b c d | a",
		},
		"canaries and the others do not share a wave": {
			landscape: landscapeOf(own("a", former, former), own("b", former, former), own("c", former, former)),
			selection: Selection{Canaries: []string{"c"}},
			want:      "c | a b",
		},
		"those that have it are done": {
			landscape: landscapeOf(own("a", latest, latest), own("b", former, former)),
			want:      "b; done: a",
		},
		"what has begun comes first": {
			landscape: landscapeOf(own("a", former, former), own("b", latest, former, begunFor(latest)), own("c", latest, latest, begunFor(latest))),
			want:      "begun b c | a",
		},
		"what another tool has changed has begun, too": {
			landscape: landscapeOf(own("a", latest, former)),
			want:      "begun a",
		},
		"another version begins again": {
			landscape: landscapeOf(own("a", "v1.150.4", former, begunFor("v1.150.4"))),
			want:      "a",
		},
		"what another version has broken comes first, then canaries": {
			landscape: landscapeOf(own("a", former, former), own("b", former, former), own("c", "v1.150.4", former, begunFor("v1.150.4")), own("d", "v1.150.4", former, begunFor("v1.150.4"))),
			selection: Selection{Canaries: []string{"b"}},
			want:      "c d | b | a",
		},
		"a gardenlet that a former upgrade broke can be upgraded": {
			landscape: landscapeOf(own("a", "v1.150.4", former, begunFor("v1.150.4")), unready("a")),
			want:      "a",
		},
		"only those of the selector": {
			landscape: landscapeOf(own("a", former, former), own("b", former, former)),
			selection: Selection{Seeds: labels.SelectorFromSet(labels.Set{"name": "b"})},
			want:      "b",
		},
		"managed seeds follow": {
			landscape: landscapeOf(own("a", former, former), managed("m", "a", "", former), managed("n", "m", "", former)),
			want:      "a<m,n>",
		},
		"managed seeds follow what has begun": {
			landscape: landscapeOf(own("a", latest, latest, begunFor(latest)), managed("m", "a", "", latest)),
			want:      "begun a<m>",
		},
		"managed seeds that have followed are done": {
			landscape: landscapeOf(own("a", latest, latest), managed("m", "a", "", latest)),
			want:      "done: a m",
		},
		"a managed seed whose parent is not selected": {
			landscape: landscapeOf(own("a", former, former), managed("m", "a", "", former)),
			selection: Selection{Seeds: labels.SelectorFromSet(labels.Set{"name": "m"})},
			want:      `held: m (its gardenlet follows that of seed "a", which is not upgraded now)`,
		},
		"a managed seed with an image of its own comes after its parent": {
			landscape: landscapeOf(own("b", former, former), managed("a", "b", former, former), managed("c", "a", "", former)),
			want:      "b | a<c>",
		},
		"also as a canary": {
			landscape: landscapeOf(own("b", former, former), managed("a", "b", former, former), own("c", former, former)),
			selection: Selection{Canaries: []string{"a", "b"}},
			want:      "b | a | c",
		},
		"a managed seed with an image of its own, whose parent has the version": {
			landscape: landscapeOf(own("b", latest, latest), managed("a", "b", former, former)),
			want:      "a; done: b",
		},
		"a managed seed with an image of its own, whose parent is not selected": {
			landscape: landscapeOf(own("b", former, former), managed("a", "b", former, former)),
			selection: Selection{Seeds: labels.SelectorFromSet(labels.Set{"name": "a"})},
			want:      `held: a (the gardenlet of seed "b" deploys it, and is not upgraded now)`,
		},
		"held": {
			landscape: landscapeOf(
				own("a", former, former, annotated(seedmanagementv1alpha1.AnnotationCreatedByGardenlet)),
				own("b", former, former, func(g *seedmanagementv1alpha1.Gardenlet) {
					g.Labels = map[string]string{operatorv1alpha1.LabelKeyGardenletAutoUpdates: "true"}
				}),
				own("c", former, former), unready("c"),
				own("d", former, "v1.152.0"),
				own("e", former, former, func(g *seedmanagementv1alpha1.Gardenlet) {
					g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Ref: new("registry.example.com/gardener@sha256:abc")}
				}),
				seed("f", former), seed("g", latest), managed("h", "", "", former),
			),
			want: "done: g; held: " +
				"a (its gardenlet has created the Gardenlet: check it, and remove the annotation seedmanagement.gardener.cloud/created-by-gardenlet), " +
				"b (its chart follows gardener-operator: remove the label operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref from the Gardenlet to upgrade it here), " +
				"c (its condition GardenletReady is not True, so its gardenlet would not upgrade itself: repair it first), " +
				"d (it was reconciled by gardenlet v1.152.0, and gardenlet v1.151.0 must not go back to an earlier minor version), " +
				"e (its image has a digest, which no version follows from: remove the image, so that it comes from the chart), " +
				"f (it has neither a Gardenlet nor a ManagedSeed: upgrade its gardenlet as it was deployed), " +
				"h (the shoot of its ManagedSeed is on no seed, or moves to another one)",
		},
		"the garden is older": {
			landscape: landscapeOf(own("a", former, former)),
			garden:    "v1.150.9",
			err:       "upgrade the garden first",
		},
		"an unknown canary": {
			landscape: landscapeOf(own("a", former, former)),
			selection: Selection{Canaries: []string{"b"}},
			err:       `canary "b" is not among the selected seeds`,
		},
		"a canary that follows": {
			landscape: landscapeOf(own("a", former, former), managed("m", "a", "", former)),
			selection: Selection{Canaries: []string{"m"}},
			err:       `follows that of seed "a", so name that one`,
		},
		"a canary that is held": {
			landscape: landscapeOf(seed("a", former)),
			selection: Selection{Canaries: []string{"a"}},
			err:       `canary "a" cannot be upgraded`,
		},
		"a seed to accept that was not upgraded": {
			landscape: landscapeOf(own("a", former, former)),
			selection: Selection{Accepted: []string{"a"}},
			err:       "its upgrade has not begun",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.selection
			s.Target = target(t, latest, "")
			if s.Size == 0 {
				s.Size = 2
			}
			if s.Seeds == nil {
				s.Seeds = labels.Everything()
			}
			garden := latest
			if tc.garden != "" {
				garden = tc.garden
			}
			got, err := plan(tc.landscape, s, semver.MustParse(garden))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("the error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, summary(got)); diff != "" {
				t.Errorf("plan() (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not replaced may have the images of the former version, which is said before anything is done.
func TestPlanOverwrites(t *testing.T) {
	with := func(text string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Deployment.ImageVectorOverwrite = &text }
	}
	l := landscapeOf(own("a", former, former, with("former")), own("b", former, former), own("c", former, former, with("")),
		own("d", latest, latest, with("former")), own("e", latest, latest, with("new")), own("f", latest, latest, with("former"), begunFor(latest)))
	for name, tc := range map[string]struct {
		overwrites Overwrites
		want, kept string
	}{
		"none is given": {want: "begun f | a b | c; done: d e", kept: "a f"},
		"one is given":  {overwrites: Overwrites{Images: new("new")}, want: "f | a b | c d; done: e"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := ParseTarget(latest, "", tc.overwrites)
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan(l, Selection{Target: target, Seeds: labels.Everything(), Size: 2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if summary(got) != tc.want || strings.Join(got.Kept, " ") != tc.kept {
				t.Errorf("plan() = %s, %q keep theirs; want %s, %q", summary(got), got.Kept, tc.want, tc.kept)
			}
		})
	}
}

func summary(p *Plan) string {
	var waves, held, parts []string
	for _, wave := range p.Waves {
		var names []string
		if wave.Begun {
			names = append(names, "begun")
		}
		for _, g := range wave.Gardenlets {
			name := g.Seed
			if len(g.Followers) > 0 {
				name += "<" + strings.Join(g.Followers, ",") + ">"
			}
			names = append(names, name)
		}
		waves = append(waves, strings.Join(names, " "))
	}
	for _, h := range p.Held {
		held = append(held, fmt.Sprintf("%s (%s)", h.Seed, h.Reason))
	}
	if len(waves) > 0 {
		parts = append(parts, strings.Join(waves, " | "))
	}
	if len(p.Done) > 0 {
		parts = append(parts, "done: "+strings.Join(p.Done, " "))
	}
	if len(held) > 0 {
		parts = append(parts, "held: "+strings.Join(held, ", "))
	}
	return strings.Join(parts, "; ")
}
