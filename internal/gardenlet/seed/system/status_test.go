package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestAllocatable(t *testing.T) {
	got := allocatable(corev1.ResourceList{"shoots": resource.MustParse("10")}, corev1.ResourceList{"shoots": resource.MustParse("2"), "other": resource.MustParse("1")})
	if diff := cmp.Diff(corev1.ResourceList{"shoots": resource.MustParse("8")}, got); diff != "" {
		t.Errorf("allocatable() (-want +got):\n%s", diff)
	}
}

func TestUnfinished(t *testing.T) {
	gardener := corev1beta1.Gardener{Version: "v2"}
	done := corev1beta1.SeedStatus{
		LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}, ObservedGeneration: 3, Gardener: &gardener,
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.SeedStatus)
		want   bool
	}{
		"done":                  {change: func(*corev1beta1.SeedStatus) {}},
		"new":                   {change: func(s *corev1beta1.SeedStatus) { *s = corev1beta1.SeedStatus{} }, want: true},
		"changed":               {change: func(s *corev1beta1.SeedStatus) { s.ObservedGeneration = 2 }, want: true},
		"failed":                {change: func(s *corev1beta1.SeedStatus) { s.LastOperation.State = corev1beta1.LastOperationStateError }, want: true},
		"of an older gardenlet": {change: func(s *corev1beta1.SeedStatus) { s.Gardener.Version = "v1" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Status: *done.DeepCopy()}
			seed.Generation = 3
			tc.change(&seed.Status)
			if got := unfinished(seed, gardener); got != tc.want {
				t.Errorf("unfinished() is %t", got)
			}
		})
	}
}
