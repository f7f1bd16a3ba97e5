package managedseed

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s"}, Status: corev1beta1.ShootStatus{SeedName: new("here")}}
	managed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", Finalizers: []string{constants.FinalizerGardenerName}},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "s"}},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot, managed).WithStatusSubresource(managed).Build()
	behind.Case[*seedmanagementv1alpha1.ManagedSeed]{
		API: api, Object: managed,
		Status: func(m *seedmanagementv1alpha1.ManagedSeed) any { return m.Status.Conditions[0].Status },
		Other:  func(m *seedmanagementv1alpha1.ManagedSeed) { m.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{gardenCache: cache, watches: newGardenletWatches(), Values: Values{
				SeedName: "here", GardenAPI: api, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
				Config: gardenletconfigv1alpha1.ManagedSeedControllerConfiguration{WaitSyncPeriod: &metav1.Duration{Duration: time.Hour}},
			}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(managed)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// The gardenlets of ManagedSeeds do not get the release of one that may be rolled back.
func TestConfirmedHere(t *testing.T) {
	for name, tc := range map[string]struct {
		secret string
		state  trial.State
		first  bool
		want   error
	}{
		"it was never updated":                             {},
		"its update is prepared, maybe during another one": {"gardenlet-upgrade", trial.Preparing, false, errUnconfirmed},
		"its update is tried":                              {"gardenlet-upgrade", trial.Trying, false, errUnconfirmed},
		"its update is rolled back":                        {"gardenlet-upgrade", trial.RollingBack, false, errUnconfirmed},
		"its update was rolled back":                       {"gardenlet-upgrade", trial.RolledBack, false, nil},
		"its update works":                                 {"gardenlet-upgrade", trial.Succeeded, true, nil},
		"it is deployed by a ManagedSeed, and tried":       {"gardenlet-rollout", trial.Trying, false, errUnconfirmed},
		"it is the first one of a ManagedSeed":             {"gardenlet-rollout", trial.Trying, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().Build()
			if tc.secret != "" {
				r, err := trial.ReadFrom(t.Context(), seed, client.ObjectKey{Namespace: "garden", Name: tc.secret})
				if err != nil {
					t.Fatal(err)
				}
				r.ID, r.State = "a", tc.state
				if !tc.first {
					r.Previous = []trial.Previous{{Object: toUnstructured(t, config("c", "before"))}}
				}
				if err := r.Write(t.Context(), seed); err != nil {
					t.Fatal(err)
				}
			}
			if err := confirmedHere(t.Context(), seed); !errors.Is(err, tc.want) {
				t.Errorf("confirmedHere() = %v, want %v", err, tc.want)
			}
		})
	}
}

// A status that names the namespace of another shoot does not lead to the credentials of that.
func TestConnectToOwnNamespace(t *testing.T) {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", UID: "u"}, Status: corev1beta1.ShootStatus{TechnicalID: "shoot--garden--s"},
	}
	for name, tc := range map[string]struct {
		owner string
		reads bool
	}{
		"its own":          {"u", true},
		"of another shoot": {"victim", false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--garden--s", Annotations: map[string]string{"shoot.gardener.cloud/uid": tc.owner}}}
			reads := false
			seed := fake.NewClientBuilder().WithObjects(namespace).WithInterceptorFuncs(interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					reads = true
					return context.Canceled
				},
			}).Build()
			r := &reconciler{Values: Values{SeedAPI: seed, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}}
			if _, err := r.connect(t.Context(), shoot); err == nil || reads != tc.reads {
				t.Errorf("connect() = %v, credentials were read: %t, want %t", err, reads, tc.reads)
			}
		})
	}
}
