package kubeproxy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldReachesKubeProxy(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.KubeProxyConfig]{
		Render: func(t *testing.T, config *corev1beta1.KubeProxyConfig) string {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeProxy = config
			v, err := For(shoot, []corev1.Node{}, func(string, string) (string, error) { return "", nil })
			if err != nil {
				t.Fatal(err)
			}
			objects, err := Objects(v)
			return everyfield.YAML(t, []any{Enabled(shoot), objects}, err)
		},
		Values: map[string][2]any{"mode": {corev1beta1.ProxyModeIPTables, corev1beta1.ProxyModeIPVS}},
	})
}

func TestAddressesFollowTheFirstFamily(t *testing.T) {
	for name, tc := range map[string]struct{ pods, want []string }{
		"IPv4":                  {[]string{"10.4.0.0/16"}, []string{"0.0.0.0:10256", "10.4.0.0/16"}},
		"IPv6":                  {[]string{"2001:db8::/56"}, []string{"[::]:10256", "2001:db8::/56"}},
		"both, with IPv4 first": {[]string{"10.4.0.0/16", "2001:db8::/56"}, []string{"0.0.0.0:10256", "10.4.0.0/16,2001:db8::/56"}},
		"both, with IPv6 first": {[]string{"2001:db8::/56", "10.4.0.0/16"}, []string{"[::]:10256", "2001:db8::/56,10.4.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Mode: new(corev1beta1.ProxyModeIPVS)}
			shoot.Status.Networking = &corev1beta1.NetworkingStatus{Pods: tc.pods}
			v, err := For(shoot, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			configMap, err := v.config()
			if err != nil {
				t.Fatal(err)
			}
			config := map[string]any{}
			if err := yaml.Unmarshal([]byte(configMap.Data[keyConfig]), &config); err != nil {
				t.Fatal(err)
			}
			if config["healthzBindAddress"] != tc.want[0] || config["clusterCIDR"] != tc.want[1] || config["mode"] != "ipvs" {
				t.Errorf("configuration is %v, want %v", config, tc.want)
			}
		})
	}
}
