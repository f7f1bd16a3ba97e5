package managedseed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
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
