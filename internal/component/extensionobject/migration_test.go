package extensionobject_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// What was reconciled on this seed is not restored again: its extension knows more than what was saved.
func TestApplyRestores(t *testing.T) {
	for name, tc := range map[string]struct {
		existing   bool
		last       corev1beta1.LastOperationType
		state      corev1beta1.LastOperationState
		annotation string
		own        string
		want       string
		wantState  string
	}{
		"new":                            {want: "restore", wantState: `"saved"`},
		"waits for its state":            {existing: true, annotation: "wait-for-state", want: "restore", wantState: `"saved"`},
		"is being restored":              {existing: true, last: "Restore", state: "Processing", own: `"own"`, want: "restore", wantState: `"own"`},
		"has taken over its state":       {existing: true, last: "Restore", state: "Error", want: "restore"},
		"restored":                       {existing: true, last: "Restore", state: "Succeeded", own: `"own"`, want: "reconcile", wantState: `"own"`},
		"restored, without a state":      {existing: true, last: "Restore", state: "Succeeded", want: "reconcile"},
		"never left the seed":            {existing: true, last: "Reconcile", state: "Error", want: "reconcile"},
		"was released and is back again": {existing: true, last: "Migrate", state: "Succeeded", want: "restore", wantState: `"saved"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := restoring(t)
			if tc.existing {
				obj := infrastructure()
				obj.UID = "1"
				if tc.annotation != "" {
					obj.Annotations = map[string]string{"gardener.cloud/operation": tc.annotation}
				}
				if tc.last != "" {
					obj.Status.LastOperation = &corev1beta1.LastOperation{Type: tc.last, State: tc.state}
				}
				if tc.own != "" {
					obj.Status.State = &runtime.RawExtension{Raw: []byte(tc.own)}
				}
				c = restoring(t, obj)
			}
			v := extensionobject.Values{Client: c, Clock: clock.RealClock{}, Always: true, Restore: func(_ context.Context, kind, name string) (extensionobject.State, error) {
				if kind != "Infrastructure" || name != "a" {
					t.Errorf("the state of %s %q is read", kind, name)
				}
				return extensionobject.State{State: &runtime.RawExtension{Raw: []byte(`"saved"`)}}, nil
			}}
			if err := extensionobject.Apply(t.Context(), v, infrastructure(), func(o *extensionsv1alpha1.Infrastructure) { o.Spec.Region = "r" }); err != nil {
				t.Fatal(err)
			}
			got := infrastructure()
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			state := ""
			if got.Status.State != nil {
				state = string(got.Status.State.Raw)
			}
			if requested := got.Annotations["gardener.cloud/operation"]; requested != tc.want || state != tc.wantState || got.Spec.Region != "r" {
				t.Errorf("%q is requested with state %s, want %q with %s", requested, state, tc.want, tc.wantState)
			}
		})
	}
}

// A resource is released once, and one that is gone needs nothing.
func TestMigrate(t *testing.T) {
	obj := infrastructure()
	c := restoring(t, obj)
	v := extensionobject.Values{Client: c, Clock: clock.RealClock{}}
	requested := func() string {
		t.Helper()
		if err := extensionobject.Migrate(t.Context(), v, infrastructure()); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		return obj.Annotations["gardener.cloud/operation"]
	}
	if got := requested(); got != "migrate" {
		t.Errorf("operation is %q", got)
	}
	obj.Status.LastOperation = &corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}
	if extensionobject.Migrated(obj) {
		t.Error("it counts as released although its extension is not done")
	}
	obj.Annotations = nil
	if err := c.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	obj.Status.LastOperation = &corev1beta1.LastOperation{Type: "Migrate", State: "Succeeded"}
	if err := c.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if got := requested(); got != "" {
		t.Errorf("operation %q is requested again", got)
	}
	for _, name := range []string{"a", "gone"} {
		other := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: name}}
		if err := extensionobject.Migrate(t.Context(), v, other); err != nil {
			t.Error(err)
		}
	}
}

func restoring(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(objects...).WithStatusSubresource(&extensionsv1alpha1.Infrastructure{}).Build()
}
