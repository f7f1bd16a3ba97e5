package upgrade

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/test/behind"
	"gardener.cloud/gardener/test/builder"
)

func TestReconcileWithStaleCache(t *testing.T) {
	invalid := builder.Gardenlet("a", withInvalidConfig)
	api := garden(t, invalid)
	behind.Case[*seedmanagementv1alpha1.Gardenlet]{
		API: api, Object: invalid,
		Status: func(g *seedmanagementv1alpha1.Gardenlet) any { return g.Status.Conditions[0].Status },
		Other:  func(g *seedmanagementv1alpha1.Gardenlet) { g.Status.Conditions[0].Status = corev1beta1.ConditionTrue },
		Pass: func(cache client.WithWatch) {
			if err := pass(t, &reconciler{Values: Values{GardenAPI: api, ReachesGarden: func() bool { return false }}, gardenCache: cache}); !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An error that only another spec fixes is retried until it is reported.
func TestUnreportedErrorIsRetried(t *testing.T) {
	api := garden(t, builder.Gardenlet("a", withInvalidConfig))
	refuses := interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("refused")
		},
	})
	err := pass(t, &reconciler{Values: Values{GardenAPI: api, ReachesGarden: func() bool { return false }}, gardenCache: refuses})
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("the error is %v, which is not retried", err)
	}
}

// A gardenlet that reaches the garden is not rolled back because the registry does not respond.
func TestConfirmedWithoutRegistry(t *testing.T) {
	applied := metav1.NewTime(time.Unix(1, 0))
	for name, tc := range map[string]struct {
		before  trial.Trial
		reaches bool
		want    string
	}{
		"it reaches the garden":         {trial.Trial{State: trial.Trying, Applied: applied, Confirmed: "old"}, true, "new"},
		"it does not reach the garden":  {trial.Trial{State: trial.Trying, Applied: applied}, false, ""},
		"not all objects were applied":  {trial.Trial{State: trial.Trying}, true, ""},
		"nothing is tried":              {trial.Trial{State: trial.Succeeded, Applied: applied, Confirmed: "old"}, true, "old"},
		"another one is to be deployed": {trial.Trial{State: trial.Preparing}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seedAPI := fake.NewClientBuilder().Build()
			before, err := trial.Read(t.Context(), seedAPI)
			if err != nil {
				t.Fatal(err)
			}
			before.State, before.Applied, before.Confirmed = tc.before.State, tc.before.Applied, tc.before.Confirmed
			if err := before.Write(t.Context(), seedAPI); err != nil {
				t.Fatal(err)
			}
			api := garden(t, builder.Gardenlet("a", func(g *seedmanagementv1alpha1.Gardenlet) {
				g.Spec.Deployment.Helm.OCIRepository.Ref = new("127.0.0.1:1/gardenlet:v1")
			}))
			err = pass(t, &reconciler{
				Values:      Values{GardenAPI: api, SeedAPI: seedAPI, Pod: "new", ReachesGarden: func() bool { return tc.reaches }},
				gardenCache: api, charts: &chart.Puller{},
			})
			if registry := (*registryError)(nil); !errors.As(err, &registry) {
				t.Errorf("the error is %v", err)
			}
			got, err := trial.Read(t.Context(), seedAPI)
			if err != nil || got.Confirmed != tc.want {
				t.Errorf("pod %q is confirmed, want %q: %v", got.Confirmed, tc.want, err)
			}
		})
	}
}

func withInvalidConfig(g *seedmanagementv1alpha1.Gardenlet) {
	g.Spec.Config = &runtime.RawExtension{Raw: []byte(`[]`)}
}

func garden(t *testing.T, object *seedmanagementv1alpha1.Gardenlet) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := seedmanagementv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build()
}

// pass reconciles Gardenlet "a".
func pass(t *testing.T, r *reconciler) error {
	t.Helper()
	r.Clock = clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "garden", Name: "a"}})
	return err
}
