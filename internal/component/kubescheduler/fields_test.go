package kubescheduler

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldReachesTheScheduler(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.KubeSchedulerConfig]{
		Render: func(t *testing.T, config *corev1beta1.KubeSchedulerConfig) string {
			objects, err := Objects(Values{Config: config})
			return everyfield.YAML(t, objects, err)
		},
		Values:     map[string][2]any{"profile": {corev1beta1.SchedulingProfileBalanced, corev1beta1.SchedulingProfileBinPacking}},
		Exceptions: map[string]string{"kubeMaxPDVols": "deprecated: CSI drivers say how many volumes a node takes"},
	})
}
