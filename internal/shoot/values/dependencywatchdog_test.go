package values

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
)

// The prober has access to shoots with nodes. Otherwise, what it has had is deleted.
func TestAccessOfTheDependencyWatchdog(t *testing.T) {
	for name, tc := range map[string]struct {
		enabled, workerless, want bool
	}{
		"enabled": {enabled: true, want: true}, "disabled": {}, "without nodes": {enabled: true, workerless: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			o.Seed.Spec.Settings = &corev1beta1.SeedSettings{DependencyWatchdog: &corev1beta1.SeedSettingDependencyWatchdog{
				Prober: &corev1beta1.SeedSettingDependencyWatchdogProber{Enabled: tc.enabled},
			}}
			if tc.workerless {
				o.Shoot.Spec.Provider.Workers = nil
			}
			source := Source{State: o}
			server := source.Kubeconfigs()["shoot-access-dependency-watchdog-probe"]
			if got := server == "https://kube-apiserver.shoot--dev--crazy-botany.svc"; got != tc.want {
				t.Errorf("the kubeconfig is for %q", server)
			}
			resources, err := source.Resources()
			if err != nil {
				t.Fatal(err)
			}
			if got := len(resources["shoot-core-dependency-watchdog"]) > 0; got != tc.want {
				t.Errorf("the shoot contains permissions: %t", got)
			}
			if got := len(source.Unused()) == 0; got != tc.want {
				t.Errorf("unused are %v", source.Unused())
			}
		})
	}
}
