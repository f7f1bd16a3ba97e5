package machinedeployment

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
)

// A deployment that a user froze is scaled again when the annotation unfreezes it.
func TestFrozenDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		unfreeze, reason string
		labelled         bool
		machines         int32
	}{
		"stays so":                    {"", "True " + machineset.ReasonLabel, true, 0},
		"stays so with another value": {"no", "True " + machineset.ReasonLabel, true, 0},
		"is unfrozen":                 {"True", "", false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			d := deploymentOfSize(3)
			d.Namespace, d.UID, d.Labels = "shoot", "d", map[string]string{machinev1alpha1.FreezeLabel: machinev1alpha1.LabelValueTrue}
			if tc.unfreeze != "" {
				d.Annotations = map[string]string{machinev1alpha1.UnfreezeAnnotation: tc.unfreeze}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(d).WithObjects(d).Build()
			r := &reconciler{controlCache: c, controlAPI: c, targetCache: c, events: events.NewFakeRecorder(10), clock: testingclock.NewFakePassiveClock(now)}
			for range 2 { // the second pass acts on what the first one wrote
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(d)}); err != nil {
					t.Fatal(err)
				}
			}
			sets := &machinev1alpha1.MachineSetList{}
			if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(d), d), c.List(t.Context(), sets)); err != nil || len(sets.Items) != 1 {
				t.Fatalf("%d sets, %v", len(sets.Items), err)
			}
			if _, labelled := d.Labels[machinev1alpha1.FreezeLabel]; labelled != tc.labelled || d.Annotations[machinev1alpha1.UnfreezeAnnotation] == "True" {
				t.Errorf("labels are %v, annotations %v", d.Labels, d.Annotations)
			}
			if got := reasonOf(d.Status, machinev1alpha1.MachineDeploymentFrozen); got != tc.reason {
				t.Errorf("Frozen is %q, want %q", got, tc.reason)
			}
			if got := sets.Items[0].Spec.Replicas; got != tc.machines {
				t.Errorf("its set has %d replicas, want %d", got, tc.machines)
			}
		})
	}
}
