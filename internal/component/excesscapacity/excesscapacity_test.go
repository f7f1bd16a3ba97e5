package excesscapacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/golden"
)

func reservation(enabled *bool) *corev1beta1.SeedSettingExcessCapacityReservation {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("6Gi")}
	return &corev1beta1.SeedSettingExcessCapacityReservation{Enabled: enabled, Configs: []corev1beta1.SeedSettingExcessCapacityReservationConfig{
		{Resources: resources},
		{
			Resources: resources, NodeSelector: map[string]string{"pool": "large"},
			Tolerations: []corev1.Toleration{{Key: "large", Operator: corev1.TolerationOpExists}},
		},
	}}
}

func TestObjects(t *testing.T) {
	golden.Objects(t, "one-zone.yaml", Objects(Values{Namespace: "garden", Image: "pause", Zones: []string{"a"}, Reservation: reservation(nil)}))
	golden.Objects(t, "three-zones.yaml", Objects(Values{
		Namespace: "garden", Image: "pause", Zones: []string{"a", "b", "c"}, Reservation: reservation(new(true)),
	}))
}

func TestDisabled(t *testing.T) {
	for name, r := range map[string]*corev1beta1.SeedSettingExcessCapacityReservation{"no setting": nil, "disabled": reservation(new(false))} {
		if objects := Objects(Values{Reservation: r}); len(objects) > 0 {
			t.Errorf("%s: rendered %v", name, objects)
		}
	}
}
