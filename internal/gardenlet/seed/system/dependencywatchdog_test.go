package system

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Each part is there if its setting says so, and its health counts then.
func TestDependencyWatchdog(t *testing.T) {
	seedAPI := fake.NewClientBuilder().Build()
	for _, tc := range []struct {
		prober, weeder bool
		want           []string
	}{
		{true, true, []string{"dependency-watchdog-prober", "dependency-watchdog-weeder"}},
		{true, false, []string{"dependency-watchdog-prober"}},
		{false, true, []string{"dependency-watchdog-weeder"}},
		{false, false, nil},
	} {
		seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{DependencyWatchdog: &corev1beta1.SeedSettingDependencyWatchdog{
			Prober: &corev1beta1.SeedSettingDependencyWatchdogProber{Enabled: tc.prober}, Weeder: &corev1beta1.SeedSettingDependencyWatchdogWeeder{Enabled: tc.weeder},
		}}}}
		if err := (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(seed).deployDependencyWatchdog(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, exist, checked := &appsv1.DeploymentList{}, []string(nil), []string(nil)
		if err := seedAPI.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			exist = append(exist, d.Name)
		}
		without := Components(&corev1beta1.Seed{}, nil)
		for _, object := range Components(seed, nil)[len(without):] {
			checked = append(checked, object.GetName())
		}
		slices.Sort(checked)
		if !slices.Equal(exist, tc.want) || !slices.Equal(checked, tc.want) {
			t.Errorf("prober %t, weeder %t: there are %q, and %q are checked", tc.prober, tc.weeder, exist, checked)
		}
	}
}
