package local

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// The state of an Extension has the operations in their order. Repetitions are left out, and the oldest ones if there are many.
func TestExtensionRecordsOperations(t *testing.T) {
	a, e := recorder{}, &extensionsv1alpha1.Extension{}
	call := func(operation func() error, want string) {
		t.Helper()
		if err := operation(); err != nil {
			t.Fatal(err)
		}
		if got := string(e.Status.State.Raw); got != want {
			t.Errorf("state is %s, want %s", got, want)
		}
	}
	reconcile := func() error { return a.Reconcile(t.Context(), e, nil) }
	call(reconcile, `{"operations":["reconcile"]}`)
	call(reconcile, `{"operations":["reconcile"]}`)
	call(func() error { return a.Migrate(t.Context(), e, nil) }, `{"operations":["reconcile","migrate"]}`)
	call(func() error { return a.Restore(t.Context(), e, nil) }, `{"operations":["reconcile","migrate","restore"]}`)
	call(func() error { return a.Delete(t.Context(), e, nil) }, `{"operations":["reconcile","migrate","restore"]}`)
	e.Status.State.Raw = []byte(`{"operations":["1","2","3","4","5","6","7","8","9","10"]}`)
	call(reconcile, `{"operations":["2","3","4","5","6","7","8","9","10","reconcile"]}`)

	e.Status.State.Raw = []byte("1")
	if err := reconcile(); err == nil {
		t.Error("a state of another extension is accepted")
	}
	e.Status.State, e.Spec.ProviderConfig = nil, &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	if err := reconcile(); err == nil {
		t.Error("a configuration is accepted")
	}
}
