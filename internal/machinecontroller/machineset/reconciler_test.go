package machineset

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// A frozen set creates no machines until it is unfrozen: when the surplus is gone, or by a user if a user froze it.
func TestFrozenSet(t *testing.T) {
	type state struct {
		label    bool
		reason   string
		machines int
	}
	for name, tc := range map[string]struct {
		machines int // 3 are desired
		label    bool
		change   func(*machinev1alpha1.MachineSet) // after the first pass
		broken   bool                              // no status is written in the first pass
		want     []state                           // after each pass
	}{
		"by a user, until the label is removed": {
			machines: 2, label: true, change: func(s *machinev1alpha1.MachineSet) { delete(s.Labels, machinev1alpha1.FreezeLabel) },
			want: []state{{true, ReasonLabel, 2}, {false, "", 3}},
		},
		"by a user, until the annotation": {
			machines: 2, label: true, change: func(s *machinev1alpha1.MachineSet) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, machinev1alpha1.UnfreezeAnnotation, "True")
			},
			want: []state{{true, ReasonLabel, 2}, {false, "", 3}},
		},
		"by a surplus, until it is gone": {
			machines: 7, want: []state{{true, reasonOvershoots, 6}, {true, reasonOvershoots, 5}, {false, "", 4}, {false, "", 3}},
		},
		"by a surplus, when the status was not written at first": {
			machines: 7, broken: true, want: []state{{false, "", 6}, {false, "", 5}, {false, "", 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := machinev1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			set := setOf(3)
			set.Namespace, set.Labels, set.Spec.Selector = "shoot", map[string]string{}, &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}
			if tc.label {
				set.Labels[machinev1alpha1.FreezeLabel] = machinev1alpha1.LabelValueTrue
			}
			objects := []client.Object{set}
			for i := range tc.machines {
				m := machine(fmt.Sprintf("m%d", i), machinev1alpha1.MachineRunning)
				m.Namespace = set.Namespace
				objects = append(objects, m)
			}
			refused := errors.New("refused")
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(set).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
					if tc.broken {
						return refused
					}
					return c.SubResource(sub).Patch(ctx, o, p, options...)
				},
			}).Build()
			r := &reconciler{controlCache: c, controlAPI: c, events: events.NewFakeRecorder(100), clock: testingclock.NewFakePassiveClock(now), burst: 1, up: 2, down: 1}
			var got []state
			for range tc.want {
				_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
				if errors.Is(err, refused) != tc.broken {
					t.Fatal(err)
				}
				tc.broken = false
				machines := &machinev1alpha1.MachineList{}
				if err := errors.Join(c.List(t.Context(), machines), c.Get(t.Context(), client.ObjectKeyFromObject(set), set)); err != nil {
					t.Fatal(err)
				}
				s := state{label: set.Labels[machinev1alpha1.FreezeLabel] != "", machines: len(machines.Items)}
				for _, condition := range set.Status.Conditions {
					s.reason = condition.Reason
				}
				got = append(got, s)
				if tc.change != nil {
					tc.change(set)
					if err := c.Update(t.Context(), set); err != nil {
						t.Fatal(err)
					}
					tc.change = nil
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(state{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
