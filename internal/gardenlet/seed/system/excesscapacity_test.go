package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// What a former setting has deployed is deleted, and nothing else.
func TestReserveExcessCapacity(t *testing.T) {
	other := &appsv1.Deployment{}
	other.Namespace, other.Name = "garden", "other"
	seedAPI := fake.NewClientBuilder().WithObjects(other).Build()
	reserve := func(n int, enabled *bool) {
		t.Helper()
		seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{
			ExcessCapacityReservation: &corev1beta1.SeedSettingExcessCapacityReservation{Enabled: enabled},
		}}}
		for range n {
			reservation := seed.Spec.Settings.ExcessCapacityReservation
			reservation.Configs = append(reservation.Configs, corev1beta1.SeedSettingExcessCapacityReservationConfig{
				Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			})
		}
		s := (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(seed)
		if err := s.reserveExcessCapacity(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exist := func(want ...string) {
		t.Helper()
		found := &appsv1.DeploymentList{}
		if err := seedAPI.List(t.Context(), found, client.InNamespace("garden")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range found.Items {
			got = append(got, d.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Deployments (-want +got):\n%s", diff)
		}
	}
	reserve(2, nil)
	exist("other", "reserve-excess-capacity-0", "reserve-excess-capacity-1")
	reserve(1, new(true))
	exist("other", "reserve-excess-capacity-0")
	reserve(1, new(false))
	exist("other")
	reserve(1, nil)
	s := (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(&corev1beta1.Seed{})
	if err := s.releaseExcessCapacity(t.Context()); err != nil {
		t.Fatal(err)
	}
	exist("other")
}
