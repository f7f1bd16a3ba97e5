package coredns

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldReachesCoreDNS(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.CoreDNS]{
		Render: func(t *testing.T, config *corev1beta1.CoreDNS) string {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{CoreDNS: config}
			v, err := For(shoot)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := Objects(v)
			return everyfield.YAML(t, objects, err)
		},
		Values: map[string][2]any{"autoscaling.mode": {
			corev1beta1.CoreDNSAutoscalingModeHorizontal, corev1beta1.CoreDNSAutoscalingModeClusterProportional,
		}},
	})
}
