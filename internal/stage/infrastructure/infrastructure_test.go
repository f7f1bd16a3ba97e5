package infrastructure

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
)

// What deletes volumes runs again before a hibernated cluster is cleaned up. A ControlPlane that was never created is not created.
func TestWakeControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		made, deleted, want bool
	}{
		"it is hibernated":     {made: true, want: true},
		"it was never created": {},
		"it is deleted, too":   {made: true, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run()}
			obj := in.Run.ControlPlane()
			obj.UID, obj.Finalizers = "1", []string{"extensions.gardener.cloud/x"}
			obj.Spec.InfrastructureProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
			if tc.made {
				if err := clusters.Seed.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if tc.deleted {
				if err := clusters.Seed.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if err := stagetest.RunTask(t.Context(), t, []flow.Task{WakeUp(in)}, "control-plane"); err != nil {
				t.Fatal(err)
			}
			got := &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); apierrors.IsNotFound(err) != !tc.made {
				t.Fatalf("ControlPlane exists: %t, want %t (%v)", err == nil, tc.made, err)
			}
			if reconciled := got.Annotations[constants.GardenerTimestamp] != ""; reconciled != tc.want {
				t.Errorf("it is reconciled: %t, want %t", reconciled, tc.want)
			}
			if tc.made && got.Spec.InfrastructureProviderStatus == nil {
				t.Error("it loses the status of the infrastructure")
			}
		})
	}
}
