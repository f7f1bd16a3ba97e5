package kubecontrollermanager

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldReachesTheControllerManager(t *testing.T) {
	for name, tc := range map[string]struct {
		pods   []string
		except map[string]string
	}{
		"IPv4": {[]string{"10.4.0.0/16"}, map[string]string{"nodeCIDRMaskSizeIPv6": "there is no IPv6"}},
		"IPv6": {[]string{"2001:db8::/56"}, map[string]string{}},
		"both": {[]string{"10.4.0.0/16", "2001:db8::/56"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.except["podEvictionTimeout"] = "deprecated: pods tolerate, and no controller has the setting any more"
			everyfield.Run(t, everyfield.Suite[corev1beta1.KubeControllerManagerConfig]{
				Render: func(t *testing.T, config *corev1beta1.KubeControllerManagerConfig) string {
					objects, err := Objects(Values{Config: config, PodNetworks: tc.pods})
					return everyfield.YAML(t, objects, err)
				},
				Exceptions: tc.except,
			})
		})
	}
}
