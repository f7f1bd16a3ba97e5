package bootstraptoken

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestOf(t *testing.T) {
	shoot := Gardenlet{Shoot: types.NamespacedName{Namespace: "garden-prod", Name: "own"}}
	seed := Gardenlet{Seed: "a"}
	for description, want := range map[string]Token{
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/a.":                        {seed, KindManagedSeed},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/a.":                          {seed, KindGardenlet},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden-prod/self-hosted-shoot-own.": {shoot, KindGardenlet},
		"Used for connecting the self-hosted Shoot garden-prod/own to Gardener via 'gardenadm connect'":                                        {Gardenlet: shoot},
		ForSeed("a"):        {seed, KindGardenlet},
		ForManagedSeed("a"): {seed, KindManagedSeed},

		// A ManagedSeed in another namespace is none of a seed.
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden-prod/a.": {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/a":       {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/a/b.":    {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource a.":             {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/.":         {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/a b.":      {},
		"Used for connecting the self-hosted Shoot own to Gardener via 'gardenadm connect'":                                  {},
		// Neither is a Gardenlet that is in another namespace, unless its name is that of one of a shoot.
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden-prod/own.":             {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/self-hosted-shoot-.":   {},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/self-hosted-shoot-own": {},
		"Used for connecting the self-hosted Shoot garden-prod/own to the garden":                                                        {},
		"Used for connecting the self-hosted Shoot garden-prod/own":                                                                      {},
		"For the gardenlet of seed a": {},
		"":                            {},
	} {
		t.Run(description, func(t *testing.T) {
			if got := Of(description); got != want {
				t.Errorf("Of() = %+v, want %+v", got, want)
			}
		})
	}
}
