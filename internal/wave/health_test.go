package wave

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// shoots have the values of the label, and were created before now.
func shoots(values ...string) []*metav1.PartialObjectMetadata {
	out := make([]*metav1.PartialObjectMetadata, 0, len(values))
	for _, value := range values {
		out = append(out, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{constants.ShootStatus: value}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		}})
	}
	return out
}

func TestMissing(t *testing.T) {
	created := func(s []*metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
		for i := range s {
			s[i].CreationTimestamp = metav1.NewTime(now.Add(time.Minute))
		}
		return s
	}
	deleted := func(s []*metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
		for i := range s {
			s[i].DeletionTimestamp = new(metav1.NewTime(now))
		}
		return s
	}
	condition := func(name string, conditionType corev1beta1.ConditionType, status corev1beta1.ConditionStatus) fixture {
		return func(l *landscape) {
			conditions := &l.seeds[name].Status.Conditions
			*conditions = append(*conditions, corev1beta1.Condition{Type: conditionType, Status: status, Message: "because"})
		}
	}
	reconciled := func(status corev1beta1.ConditionStatus, reason string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Status.Conditions[0] = corev1beta1.Condition{Type: seedmanagementv1alpha1.GardenletReconciled, Status: status, Reason: reason, Message: "because"}
		}
	}
	ready := []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady}
	healthy := append([]corev1beta1.ConditionType{corev1beta1.SeedExtensionsReady}, ready...)
	for name, tc := range map[string]struct {
		after      []fixture
		generation int64
		before     map[string]health
		shoots     []*metav1.PartialObjectMetadata
		tolerated  int
		want       string // nothing is missing if empty
		broken     bool
	}{
		"nothing":           {after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Conditions: ready}}},
		"the former object": {after: []fixture{own("a", former, former)}, generation: 3, want: "the change is on its way"},
		"it was changed back": {
			after: []fixture{own("a", former, former)}, want: "does not request the version any more", broken: true,
		},
		"it is not observed": {
			after: []fixture{own("a", latest, former, func(g *seedmanagementv1alpha1.Gardenlet) { g.Generation++ })}, want: "has not observed the change yet",
		},
		"it is deployed": {after: []fixture{own("a", latest, former, reconciled("Progressing", "Reconciling"))}, want: "Reconciling: because"},
		"an error may pass": {
			after: []fixture{own("a", latest, former, reconciled("False", "ReconcileError"))}, want: "ReconcileError: because",
		},
		"it was rolled back": {
			after: []fixture{own("a", latest, former, reconciled("False", "RolledBack"))}, want: "because", broken: true,
		},
		"it was rolled back before": {
			after: []fixture{own("a", latest, former, reconciled("False", "RolledBack"), func(g *seedmanagementv1alpha1.Gardenlet) { g.Generation++ })},
			want:  "has not observed the change yet",
		},
		"it reports another version": {after: []fixture{own("a", latest, former)}, want: "its gardenlet reports version v1.150.3"},
		"the seed is not reconciled": {
			after: []fixture{own("a", latest, latest), func(l *landscape) { l.seeds["a"].Generation = 2 }}, want: "is not reconciled yet",
		},
		"a condition that was True": {
			after:  []fixture{own("a", latest, latest), condition("a", corev1beta1.SeedExtensionsReady, "Progressing")},
			before: map[string]health{"a": {Conditions: healthy}}, want: "condition ExtensionsReady is Progressing: because",
		},
		"a condition that is gone": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Conditions: healthy}}, want: "condition ExtensionsReady is Unknown",
		},
		"a condition that was not True": {
			after:  []fixture{own("a", latest, latest), condition("a", corev1beta1.SeedExtensionsReady, "False")},
			before: map[string]health{"a": {Conditions: ready}},
		},
		"a condition that does not count": {
			after:  []fixture{own("a", latest, latest), condition("a", corev1beta1.SeedEmergencyStopShootReconciliations, "False")},
			before: map[string]health{"a": {Conditions: ready}},
		},
		"fewer healthy shoots": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 3, Healthy: 3}}, shoots: shoots("healthy", "progressing", "unhealthy"),
			want: "2 of 3 shoots are healthy, and 3 of 3 were before",
		},
		"no more than tolerated are unhealthy": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 4, Healthy: 3}},
			shoots: shoots("healthy", "healthy", "unhealthy", "unknown"), tolerated: 25,
		},
		"more than tolerated are unhealthy": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 4, Healthy: 3}},
			shoots: shoots("healthy", "healthy", "unhealthy", "unknown"), tolerated: 24, want: "2 of 4 shoots are healthy, and 3 of 4 were before",
		},
		"a healthy shoot has left": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 3, Healthy: 2}}, shoots: shoots("healthy", "unhealthy"),
		},
		"others are unhealthy": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 3, Healthy: 2}}, shoots: shoots("healthy", "healthy", "unhealthy"),
		},
		"a new shoot": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 1, Healthy: 1}},
			shoots: append(shoots("healthy"), created(shoots("progressing"))...),
		},
		"a deleted shoot": {
			after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 2, Healthy: 2}},
			shoots: append(shoots("healthy"), deleted(shoots("unhealthy"))...),
		},
		"all shoots have left": {after: []fixture{own("a", latest, latest)}, before: map[string]health{"a": {Shoots: 2, Healthy: 2}}},
		"a follower is behind": {
			after:  []fixture{own("a", latest, latest), managed("m", "a", "", former)},
			before: map[string]health{"m": {Conditions: ready}}, want: `managed seed "m": its gardenlet reports version v1.150.3`,
		},
		"a follower fails": {
			after: []fixture{own("a", latest, latest), managed("m", "a", "", former, func(m *seedmanagementv1alpha1.ManagedSeed) {
				m.Status.Conditions[0].Status, m.Status.Conditions[0].Message = corev1beta1.ConditionFalse, "because"
			})},
			before: map[string]health{"m": {Conditions: ready}}, want: "v1.150.3: because",
		},
		"a follower that did not run": {after: []fixture{own("a", latest, latest), managed("m", "a", "", former)}},
		"a managed seed with an image of its own keeps its version": {
			after: []fixture{own("a", latest, latest), managed("m", "a", former, former)}, before: map[string]health{"m": {Conditions: ready}},
		},
		"a managed seed with an image of its own gets worse": {
			after:  []fixture{own("a", latest, latest), managed("m", "a", former, former), unready("m")},
			before: map[string]health{"m": {Conditions: ready}}, want: `managed seed "m": condition GardenletReady is Unknown`,
		},
		"it is gone": {after: []fixture{own("a", former, former), func(l *landscape) { delete(l.gardenlets, "a") }}},
	} {
		t.Run(name, func(t *testing.T) {
			l := landscapeOf(tc.after...)
			g := l.gardenlet(&seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			if object := l.gardenlets["a"]; object != nil {
				for name, was := range tc.before {
					was.At = metav1.NewTime(now)
					tc.before[name] = was
				}
				setMark(object, latest, tc.before)
			}
			v := &view{landscape: *l, shoots: map[string][]*metav1.PartialObjectMetadata{"a": tc.shoots}}
			err := v.missing(g, target(t, latest, ""), tc.generation, tc.tolerated)
			if tc.want == "" {
				if err != nil {
					t.Errorf("missing() = %v, want nothing", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("missing() = %v, want %q", err, tc.want)
			}
			if reason := (*broken)(nil); errors.As(err, &reason) != tc.broken {
				t.Errorf("missing() = %v, which is hopeless: %t, want %t", err, !tc.broken, tc.broken)
			}
		})
	}
}

// A ManagedSeed with an image of its own is rolled back by the gardenlet that deploys it. Before that has observed the change, the condition is about the
// former image.
func TestManagedSeedRolledBack(t *testing.T) {
	rolledBack := func(observed int64) *seedmanagementv1alpha1.ManagedSeed {
		l := landscapeOf(own("a", latest, latest), managed("m", "a", latest, former))
		m := l.managedSeeds["m"]
		m.Generation, m.Status.ObservedGeneration = 2, observed
		m.Status.Conditions = append(m.Status.Conditions, corev1beta1.Condition{
			Type: seedmanagementv1alpha1.ManagedSeedGardenletHealthy, Status: corev1beta1.ConditionFalse,
			Reason: seedmanagementv1alpha1.GardenletReasonRolledBack, Message: "because",
		})
		return m
	}
	for observed, want := range map[int64]bool{1: false, 2: true} {
		err := deployed(rolledBack(observed))
		if reason := (*broken)(nil); err == nil || errors.As(err, &reason) != want {
			t.Errorf("deployed() with generation %d observed = %v, which is hopeless: %t, want %t", observed, err, !want, want)
		}
	}
}

// What is stored of a seed is what a later run compares with.
func TestHealthOf(t *testing.T) {
	l := landscapeOf(own("a", former, former))
	object := l.gardenlets["a"]
	setMark(object, latest, map[string]health{"a": healthOf(l.seeds["a"], shoots("healthy", "unhealthy", "healthy"), now)})
	got := marked(object)
	want := health{At: metav1.NewTime(now.Truncate(time.Second)), Conditions: []corev1beta1.ConditionType{"GardenletReady"}, Shoots: 3, Healthy: 2}
	if !equal(got.Seeds["a"], want) || got.Version != latest {
		t.Errorf("the mark is %+v, want %+v", got, want)
	}
	object.Annotations[Annotation] = "{"
	if got := marked(object); got.Version != "" {
		t.Errorf("an invalid mark is read as %+v", got)
	}
}
