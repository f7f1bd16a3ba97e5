package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestRecord(t *testing.T) {
	seed := fake.NewClientBuilder().Build()
	none, err := Read(t.Context(), seed)
	if err != nil || none.ID != "" || none.State != "" {
		t.Fatalf("Read() without a record = %+v, %v", none, err)
	}
	want := &Trial{
		ID: "a", Generation: 2, State: RollingBack, Since: metav1.NewTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.Local)), Lease: "lease", Reason: "it crashes",
		Applied: metav1.NewTime(time.Date(2026, 11, 24, 12, 1, 0, 0, time.Local)), RestoreError: "forbidden", Confirmed: "pod", key: Key(),
		Previous: []Previous{
			{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}},
			{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}, Missing: true},
		},
	}
	if err := want.Write(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	got, err := Read(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Trial{})); diff != "" {
		t.Errorf("Read() (-written +read):\n%s", diff)
	}

	// Of the guard and the gardenlet, only one decides.
	got.State = RolledBack
	if err := got.Write(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	want.State = Trying
	if err := want.Write(t.Context(), seed); !apierrors.IsConflict(err) {
		t.Errorf("Write() of what another one has changed = %v", err)
	}
}

// What the gardenlet restores is of its chart, whatever the record says.
func TestOf(t *testing.T) {
	object := func(kind, name string) Previous {
		return Previous{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "garden", "name": name},
		}}}
	}
	got, others, err := Of([]Previous{object("ConfigMap", "a"), object("ConfigMap", "b"), object("Secret", "a")},
		[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "a"}}}, fake.NewClientBuilder().Build().Scheme())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Previous{object("ConfigMap", "a")}, got); diff != "" {
		t.Errorf("Of() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Previous{object("ConfigMap", "b"), object("Secret", "a")}, others); diff != "" {
		t.Errorf("Of() has others (-want +got):\n%s", diff)
	}
}

// What only the API server sets is not applied again, and what did not exist is deleted.
func TestSnapshot(t *testing.T) {
	before := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: "before", UID: "uid", Labels: map[string]string{"app": "gardener"},
			Annotations: map[string]string{"deployment.kubernetes.io/revision": "3", "a": "b"}, Finalizers: []string{"other"},
		},
		Data: map[string]string{"a": "before"},
	}
	seed := fake.NewClientBuilder().WithObjects(before).Build()
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "created"}}
	previous, err := Snapshot(t.Context(), seed, seed.Scheme(), []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "before"}}, created,
	})
	if err != nil {
		t.Fatal(err)
	}
	meta := func(name string) map[string]any { return map[string]any{"namespace": "garden", "name": name} }
	kept := meta("before")
	kept["labels"], kept["annotations"] = map[string]any{"app": "gardener"}, map[string]any{"a": "b"}
	want := []Previous{
		{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "data": map[string]any{"a": "before"},
		}}},
		{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("created")}}, Missing: true},
	}
	if diff := cmp.Diff(want, previous); diff != "" {
		t.Errorf("Snapshot() (-want +got):\n%s", diff)
	}
	if err := seed.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), seed, previous[1:]); err != nil {
		t.Fatal(err)
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(created), created); !apierrors.IsNotFound(err) {
		t.Errorf("what did not exist before is left: %v", err)
	}
}
