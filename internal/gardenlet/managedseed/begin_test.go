package managedseed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// config is an object of a gardenlet.
func config(name, value string) client.Object {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Data: map[string]string{"a": value},
	}
}

func toUnstructured(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// shootWith returns the API of a shoot with objects of a gardenlet.
func shootWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	shoot := fake.NewClientBuilder().Build()
	if err := kube.Apply(t.Context(), shoot, release.FieldOwner, objects...); err != nil {
		t.Fatal(err)
	}
	return shoot
}

// recorded returns a record that can be written.
func recorded(t *testing.T, shoot client.Client, r trial.Trial) *trial.Trial {
	t.Helper()
	written, err := trial.ReadFrom(t.Context(), shoot, client.ObjectKey{Namespace: "garden", Name: recordName})
	if err != nil {
		t.Fatal(err)
	}
	written.ID, written.State, written.Since, written.Applied, written.Reason, written.Previous = r.ID, r.State, r.Since, r.Applied, r.Reason, r.Previous
	return written
}

// What is requested already is not tried: while a trial has nothing to go back to, a change cannot be rolled back.
func TestBeginWhatIsThere(t *testing.T) {
	now := time.Unix(0, 0).Add(time.Hour)
	before := metav1.NewTime(time.Unix(0, 0))
	previous := []trial.Previous{{Object: toUnstructured(t, config("c", "before"))}}
	for name, tc := range map[string]struct {
		record  trial.Trial
		live    string
		working bool
		want    trial.Trial
	}{
		"the change was rolled back, and is reverted": {
			record: trial.Trial{ID: "bad", State: trial.RolledBack, Since: before, Reason: "it crashes", Previous: previous},
			live:   "new", want: trial.Trial{ID: "new", State: trial.Succeeded, Since: metav1.NewTime(now)},
		},
		"it works, and the request is another one with the same objects": {
			record: trial.Trial{ID: "old", State: trial.Succeeded, Since: before}, working: true,
			live: "new", want: trial.Trial{ID: "new", State: trial.Succeeded, Since: metav1.NewTime(now)},
		},
		"it is tried, and the request is another one with the same objects": {
			record: trial.Trial{ID: "old", State: trial.Trying, Since: before, Applied: before, Previous: previous},
			live:   "new", want: trial.Trial{ID: "new", State: trial.Trying, Since: before, Applied: before, Previous: previous},
		},
		"it was rolled back, and is tried again": {
			record: trial.Trial{ID: "new", State: trial.RolledBack, Since: before, Reason: "it crashes", Previous: previous},
			live:   "new", want: trial.Trial{ID: "new", State: trial.Trying, Since: metav1.NewTime(now), Previous: previous},
		},
		"a change after one that was rolled back": {
			record: trial.Trial{ID: "bad", State: trial.RolledBack, Since: before, Previous: previous},
			live:   "before", want: trial.Trial{ID: "new", State: trial.Trying, Since: metav1.NewTime(now), Previous: previous},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(now)}}
			want := &rollout{
				shootClient: shootWith(t, config("c", tc.live)), object: &seedmanagementv1alpha1.ManagedSeed{}, id: "new", objects: []client.Object{config("c", "new")},
			}
			got := recorded(t, want.shootClient, tc.record)
			if err := r.begin(t.Context(), want, got, tc.working); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, got, cmpopts.IgnoreUnexported(trial.Trial{})); diff != "" {
				t.Errorf("begin() has recorded (-want +got):\n%s", diff)
			}
		})
	}
}

// A gardenlet that replaces one that is tried may lack an object of that, such as image vector overwrites. It is what it was before, so that a roll-back
// leads to the gardenlet before both.
func TestBeginRestoresWhatTheNextOneLacks(t *testing.T) {
	shoot := shootWith(t, config("deployment", "tried"), config("overwrites", "tried"), config("created", "tried"))
	unlisted := func(object client.Object) trial.Previous {
		u := toUnstructured(t, object)
		u.SetKind("Secret")
		return trial.Previous{Object: u}
	}
	elsewhere := toUnstructured(t, config("elsewhere", "by the record"))
	elsewhere.SetNamespace("kube-system")
	record := recorded(t, shoot, trial.Trial{ID: "tried", State: trial.Trying, Previous: []trial.Previous{
		{Object: toUnstructured(t, config("deployment", "before"))},
		{Object: toUnstructured(t, config("overwrites", "before"))},
		{Object: toUnstructured(t, config("created", "")), Missing: true},
		unlisted(config("secret", "by the record")),
		{Object: elsewhere},
	}})
	r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}}
	next := &rollout{
		shootClient: shoot, object: &seedmanagementv1alpha1.ManagedSeed{}, id: "next", objects: []client.Object{config("deployment", "next")},
	}
	if err := r.begin(t.Context(), next, record, false); err != nil {
		t.Fatal(err)
	}
	if len(record.Previous) != 5 {
		t.Errorf("the record has %d objects before, want 5: a later gardenlet may have them again", len(record.Previous))
	}
	configs := &corev1.ConfigMapList{}
	if err := shoot.List(t.Context(), configs); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range configs.Items {
		got[c.Name] = c.Data["a"]
	}
	delete(got, "deployment") // the fake client applies what is a dry run
	if diff := cmp.Diff(map[string]string{"overwrites": "before"}, got); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := shoot.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "secret"}, secret); !apierrors.IsNotFound(err) {
		t.Errorf("what is no optional object of the chart was applied: %v", err)
	}
}

// A trial whose ten minutes have passed while this process did not run is rolled back only after another ten minutes.
func TestRollOutAfterAnInterruption(t *testing.T) {
	now := time.Unix(0, 0).Add(time.Hour)
	clk := clocktesting.NewFakePassiveClock(now)
	shoot := shootWith(t, config("c", "tried"))
	hourAgo := metav1.NewTime(time.Unix(0, 0))
	record := recorded(t, shoot, trial.Trial{
		ID: "tried", State: trial.Trying, Since: hourAgo, Applied: hourAgo, Previous: []trial.Previous{{Object: toUnstructured(t, config("c", "before"))}},
	})
	if err := record.Write(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{Values: Values{Clock: clk}}
	want := &rollout{shootClient: shoot, object: &seedmanagementv1alpha1.ManagedSeed{}, id: "tried", objects: []client.Object{config("c", "tried")}}
	for minutes := 0; minutes <= 10; minutes += 2 {
		clk.SetTime(now.Add(time.Duration(minutes) * time.Minute))
		d, err := r.rollOut(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if state := map[bool]trial.State{false: trial.Trying, true: trial.RolledBack}[minutes == 10]; d.Trial.State != state {
			t.Errorf("after %d minutes, the state is %s, want %s", minutes, d.Trial.State, state)
		}
	}
}
