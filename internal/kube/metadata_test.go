package kube

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestSplitAnnotation(t *testing.T) {
	for value, want := range map[string][]string{
		"":                    nil,
		" ; ":                 nil,
		"retry":               {"retry"},
		" reconcile ;;retry ": {"reconcile", "retry"},
		"a,b;c":               {"a,b", "c"},
	} {
		if got := SplitAnnotation(value, ";"); !slices.Equal(got, want) {
			t.Errorf("%q has %q, want %q", value, got, want)
		}
	}
}

func TestAddToAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		add   []string
		want  string
	}{
		"nothing to nothing":         {},
		"the first":                  {add: []string{"a", "b"}, want: "a,b"},
		"after existing parts":       {value: "a", add: []string{"b"}, want: "a,b"},
		"once":                       {value: "a", add: []string{"b", "a", "b"}, want: "a,b"},
		"nothing new: left as it is": {value: " a , b", add: []string{"b"}, want: " a , b"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := &metav1.ObjectMeta{}
			if tc.value != "" {
				meta.Annotations = map[string]string{"key": tc.value}
			}
			AddToAnnotation(meta, "key", ",", tc.add...)
			if got, ok := meta.Annotations["key"]; got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRemoveFromAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		value  string
		remove []string
		want   map[string]string
	}{
		"one of several":               {value: "a;b;c", remove: []string{"b"}, want: map[string]string{"key": "a;c", "other": "x"}},
		"with space":                   {value: " a ; b", remove: []string{"a"}, want: map[string]string{"key": "b", "other": "x"}},
		"all":                          {value: "a;b", remove: []string{"b", "a"}, want: map[string]string{"other": "x"}},
		"nothing of it":                {value: "a", remove: []string{"b"}, want: map[string]string{"key": "a", "other": "x"}},
		"there is no such annotation":  {remove: []string{"b"}, want: map[string]string{"other": "x"}},
		"a part that only looks alike": {value: "ab;a", remove: []string{"a"}, want: map[string]string{"key": "ab", "other": "x"}},
		"the object is read again":     {value: "a;added", remove: []string{"a"}, want: map[string]string{"key": "added", "other": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Annotations: map[string]string{"other": "x"}}}
			if tc.value != "" {
				stored.Annotations["key"] = tc.value
			}
			c := fake.NewFakeClient(stored)
			// The caller may have an older version, without what was added since.
			stale := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
			if err := RemoveFromAnnotation(t.Context(), c, stale, "key", ";", tc.remove); err != nil {
				t.Fatal(err)
			}
			got := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(stale), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemoveFromAnnotationOfDeletedObject(t *testing.T) {
	gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	if err := RemoveFromAnnotation(t.Context(), fake.NewFakeClient(), gone, "key", ";", []string{"a"}); err != nil {
		t.Error(err)
	}
}

// What is added between the read and the write stays.
func TestRemoveFromAnnotationRetries(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Annotations: map[string]string{"key": "a"}}}
	raced := false
	c := fake.NewClientBuilder().WithObjects(object).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !raced {
				raced = true
				current := &corev1.ConfigMap{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
					return err
				}
				current.Annotations["key"] = "a;b"
				if err := c.Update(ctx, current); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	if err := RemoveFromAnnotation(t.Context(), c, object, "key", ";", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	got := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), got); err != nil {
		t.Fatal(err)
	}
	if got.Annotations["key"] != "b" {
		t.Errorf("annotation %q, want %q", got.Annotations["key"], "b")
	}
}
