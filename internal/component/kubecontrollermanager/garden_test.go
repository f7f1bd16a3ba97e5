package kubecontrollermanager

import (
	"slices"
	"testing"

	"gardener.cloud/gardener/internal/component/instance"
)

// A controller that a version does not have would keep it from starting, and one without its API would wait forever.
func TestControllersOfGarden(t *testing.T) {
	for name, tc := range map[string]struct {
		version       string
		apis          map[string]bool
		with, without []string
	}{
		"before 1.33": {
			version: "1.32.9", without: []string{"-node-lifecycle-controller", "-deployment-controller"},
			with: []string{"-device-taint-eviction-controller", "-podcertificaterequest-cleaner-controller", "-podgroup-protection-controller"},
		},
		"1.33": {
			version: "1.33.0", without: []string{"-device-taint-eviction-controller"}, with: []string{"-podcertificaterequest-cleaner-controller"},
		},
		"1.35": {
			version: "1.35.4", without: []string{"-device-taint-eviction-controller", "-podcertificaterequest-cleaner-controller"},
			with: []string{"-podgroup-protection-controller"},
		},
		"1.36": {version: "1.36.1", without: []string{"-podgroup-protection-controller", "-resourcepoolstatusrequest-controller"}},
		"an API is enabled": {
			version: "1.36.1", apis: map[string]bool{"apps/v1": true}, without: []string{"-job-controller"}, with: []string{"-deployment-controller"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Values{Of: instance.VirtualGarden, Version: tc.version, APIs: tc.apis}.controllers()
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range tc.without {
				if !slices.Contains(got, flag) {
					t.Errorf("%s is missing in %v", flag, got)
				}
			}
			for _, flag := range tc.with {
				if slices.Contains(got, flag) {
					t.Errorf("%s is in %v", flag, got)
				}
			}
		})
	}
	if _, err := (Values{Of: instance.VirtualGarden, Version: "one"}).controllers(); err == nil {
		t.Error("an invalid version is accepted")
	}
}
