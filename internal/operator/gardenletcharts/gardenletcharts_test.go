package gardenletcharts

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/wave"
)

// No gardenlet is newer than a component of the garden.
func TestReconciled(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Garden)
		want   bool
	}{
		"reconciled":      {change: func(*operatorv1alpha1.Garden) {}, want: true},
		"another version": {change: func(g *operatorv1alpha1.Garden) { g.Status.Gardener.Version = "v1.150.0" }},
		"no version":      {change: func(g *operatorv1alpha1.Garden) { g.Status.Gardener = nil }},
		"changed":         {change: func(g *operatorv1alpha1.Garden) { g.Generation++ }},
		"begun": {change: func(g *operatorv1alpha1.Garden) {
			g.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
		}},
		"new":     {change: func(g *operatorv1alpha1.Garden) { g.Status.LastOperation = nil }},
		"deleted": {change: func(g *operatorv1alpha1.Garden) { g.DeletionTimestamp = new(metav1.Now()) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			g.Status.Gardener, g.Status.ObservedGeneration = &corev1beta1.Gardener{Version: "v1.151.0"}, 2
			g.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded}
			tc.change(g)
			if got := reconciled(g, "v1.151.0"); got != tc.want {
				t.Errorf("reconciled() = %v", got)
			}
		})
	}
}

// An event says once that a wave does not pass, when it should have.
func TestReport(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorder := events.NewFakeRecorder(10)
	r := &reconciler{clock: testingclock.NewFakePassiveClock(now), recorder: recorder}
	for _, tc := range []struct {
		step wave.Step
		want int
	}{
		{wave.Step{Since: now.Add(-time.Minute), Missing: map[string]error{"a": errors.New("not yet")}}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("not yet")}}, 1},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("still not")}}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("still not"), "b": errors.New("not")}}, 1},
		{wave.Step{Since: now.Add(-2 * time.Hour)}, 0},
		{wave.Step{Since: now.Add(-2 * time.Hour), Missing: map[string]error{"a": errors.New("again")}}, 1},
	} {
		r.report(t.Context(), &operatorv1alpha1.Garden{}, tc.step)
		got := len(recorder.Events)
		for range got {
			<-recorder.Events
		}
		if got != tc.want {
			t.Errorf("%d events for %+v, want %d", got, tc.step, tc.want)
		}
	}
}

// The condition of the Garden says what an operator has to know, for as long as it is so.
func TestCondition(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type says struct {
		Status  corev1beta1.ConditionStatus
		Reason  string
		Message string
	}
	const current, old = "All gardenlets that follow gardener-operator have the chart of its release.",
		"Gardenlets of seeds c, d are older than the previous minor version, which was never tried together with this one. "
	heldSince := wave.Step{Wave: []string{"a", "b"}, After: time.Minute, Since: now.Add(-2 * time.Hour), Missing: map[string]error{"b": errors.New("not"), "a": errors.New("not yet")}}
	const image = "Gardenlets of seeds e, f are not updated, as spec.deployment.image of their Gardenlet names another image: remove it, or change it together with " +
		"the chart and the image vector overwrite. "
	heldAndLate := heldSince
	heldAndLate.Late = []string{"c", "d"}
	const held = "Gardenlets of further seeds are not updated, as those of seeds a, b are not as healthy as before since 2026-01-02T01:04:05Z; first: not yet"
	for name, tc := range map[string]struct {
		step wave.Step
		want says
	}{
		"nothing left": {want: says{corev1beta1.ConditionTrue, "GardenletsCurrent", current}},
		"a wave": {
			step: wave.Step{Wave: []string{"a", "b"}, After: time.Minute, Since: now, Missing: map[string]error{"a": errors.New("not yet")}},
			want: says{corev1beta1.ConditionProgressing, "GardenletsUpdating", "Gardenlets of seeds a, b are being updated."},
		},
		"not ready": {
			step: wave.Step{After: time.Minute},
			want: says{corev1beta1.ConditionProgressing, "GardenletsUpdating", "Waiting for gardenlets that have not been ready for a short time."},
		},
		"held":          {step: heldSince, want: says{corev1beta1.ConditionFalse, "GardenletUpdatesHeld", held}},
		"held and late": {step: heldAndLate, want: says{corev1beta1.ConditionFalse, "GardenletUpdatesHeld", old + held}},
		"late":          {step: wave.Step{Late: []string{"c", "d"}}, want: says{corev1beta1.ConditionFalse, "GardenletsTooOld", old + current}},
		"an overwrite of their own": {
			step: wave.Step{OwnOverwrite: []string{"g", "h"}},
			want: says{
				corev1beta1.ConditionTrue, "GardenletsCurrent",
				current + " Those of seeds g, h keep the image vector overwrite that their Gardenlet has, which may have the images of another release.",
			},
		},
		"an image of their own": {
			step: wave.Step{OwnImage: []string{"e", "f"}},
			want: says{corev1beta1.ConditionFalse, "GardenletsOwnImage", image + "All others that follow gardener-operator have the chart of its release."},
		},
		"an image of their own, and a wave": {
			step: wave.Step{OwnImage: []string{"e", "f"}, Wave: []string{"a"}, After: time.Minute, Since: now},
			want: says{corev1beta1.ConditionFalse, "GardenletsOwnImage", image + "Gardenlets of seeds a are being updated."},
		},
		"an image of their own, and late": {
			step: wave.Step{OwnImage: []string{"e", "f"}, Late: []string{"c", "d"}},
			want: says{corev1beta1.ConditionFalse, "GardenletsTooOld", old + image + "All others that follow gardener-operator have the chart of its release."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := condition(tc.step, now)
			if diff := cmp.Diff(tc.want, says{got.Status, got.Reason, got.Message}); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// The condition is there while Gardenlets follow the operator, beside those of other controllers.
func TestWriteCondition(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
	garden.Status.Conditions = []corev1beta1.Condition{{Type: operatorv1alpha1.RuntimeComponentsHealthy, Status: corev1beta1.ConditionTrue}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(garden).WithObjects(garden).Build()
	r := &reconciler{clock: testingclock.NewFakePassiveClock(time.Now()), runtimeCache: c}
	for _, tc := range []struct {
		followers int
		want      []corev1beta1.ConditionType
	}{
		{0, []corev1beta1.ConditionType{operatorv1alpha1.RuntimeComponentsHealthy}},
		{2, []corev1beta1.ConditionType{operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.GardenletsUpdated}},
		{0, []corev1beta1.ConditionType{operatorv1alpha1.RuntimeComponentsHealthy}},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			t.Fatal(err)
		}
		if err := r.writeCondition(t.Context(), garden, wave.Step{Followers: tc.followers}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			t.Fatal(err)
		}
		written := garden.ResourceVersion
		if err := r.writeCondition(t.Context(), garden, wave.Step{Followers: tc.followers}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil || garden.ResourceVersion != written {
			t.Errorf("a steady state is written (%v)", err)
		}
		var got []corev1beta1.ConditionType
		for _, condition := range garden.Status.Conditions {
			got = append(got, condition.Type)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("conditions with %d followers (-want +got):\n%s", tc.followers, diff)
		}
	}
}

// What an operator of another version wrote does not count until the Garden is reconciled by this one.
func TestForget(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		version    string
		conditions []corev1beta1.Condition
		want       []corev1beta1.ConditionStatus
	}{
		"of another version": {"v1.150.0", []corev1beta1.Condition{{Type: operatorv1alpha1.GardenletsUpdated, Status: corev1beta1.ConditionTrue}}, []corev1beta1.ConditionStatus{corev1beta1.ConditionUnknown}},
		"of this version":    {"v1.151.0", []corev1beta1.Condition{{Type: operatorv1alpha1.GardenletsUpdated, Status: corev1beta1.ConditionTrue}}, []corev1beta1.ConditionStatus{corev1beta1.ConditionTrue}},
		"no condition":       {"v1.150.0", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
			garden.Status.Gardener, garden.Status.Conditions = &corev1beta1.Gardener{Version: tc.version}, tc.conditions
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(garden).WithStatusSubresource(garden).Build()
			r := &reconciler{version: "v1.151.0", runtimeAPI: c, runtimeCache: c, clock: testingclock.NewFakePassiveClock(time.Now())}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
				t.Fatal(err)
			}
			var got []corev1beta1.ConditionStatus
			for _, condition := range garden.Status.Conditions {
				got = append(got, condition.Status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
