package migration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDecide(t *testing.T) {
	seed := func(name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
		s := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		s.Status.ObservedGeneration, s.Status.Gardener = 2, &corev1beta1.Gardener{Version: "v1.2.3"}
		s.Status.Conditions = []corev1beta1.Condition{
			{Type: "GardenletReady", Status: "True"}, {Type: "SeedSystemComponentsHealthy", Status: "True"}, {Type: "BackupBucketsReady", Status: "False"},
		}
		for _, c := range change {
			c(s)
		}
		return s
	}
	for name, tc := range map[string]struct {
		source, destination *corev1beta1.Seed
		want                string
	}{
		"ready": {seed("a"), seed("b"), "True DestinationSeedReady Destination seed cluster is ready for the shoot migration"},
		"the source is unhealthy, which may be the reason to move": {
			seed("a", func(s *corev1beta1.Seed) { s.Status.Conditions = nil }), seed("b"),
			"True DestinationSeedReady Destination seed cluster is ready for the shoot migration",
		},
		"the destination is being deleted": {seed("a"), seed("b", func(s *corev1beta1.Seed) {
			s.DeletionTimestamp = new(metav1.Now())
		}), "False DestinationSeedInDeletion Seed is being deleted"},
		"the destination does not exist": {seed("a"), nil, "False DestinationSeedUnready the destination seed does not exist"},
		"the source does not exist":      {nil, seed("b"), "False DestinationSeedUnready the source seed does not exist"},
		"no version of the source": {
			seed("a", func(s *corev1beta1.Seed) { s.Status.Gardener = nil }), seed("b"),
			`False DestinationSeedUnready seed "a" reports no Gardener version`,
		},
		"another version": {
			seed("a"), seed("b", func(s *corev1beta1.Seed) { s.Status.Gardener.Version = "v2" }),
			`False DestinationSeedUnready seed "b" has Gardener version v2, but seed "a" has v1.2.3`,
		},
		"a change is not observed": {
			seed("a"), seed("b", func(s *corev1beta1.Seed) { s.Generation++ }),
			`False DestinationSeedUnready the gardenlet of seed "b" has not observed its last change yet`,
		},
		"no gardenlet": {
			seed("a"), seed("b", func(s *corev1beta1.Seed) { s.Status.Conditions[0].Status = "Unknown" }),
			`False DestinationSeedUnready condition GardenletReady of seed "b" is Unknown`,
		},
		"not checked yet": {
			seed("a"), seed("b", func(s *corev1beta1.Seed) { s.Status.Conditions = s.Status.Conditions[:1] }),
			`False DestinationSeedUnready seed "b" has no condition SeedSystemComponentsHealthy yet`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.source, tc.destination)
			if got := string(got.Status) + " " + got.Reason + " " + got.Message; got != tc.want {
				t.Errorf("decide() = %s, want %s", got, tc.want)
			}
		})
	}
}
