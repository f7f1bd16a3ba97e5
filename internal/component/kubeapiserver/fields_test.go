package kubeapiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func selector(nodes string) runtime.RawExtension {
	return runtime.RawExtension{Raw: []byte(`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"` + nodes + `"}}`)}
}

func TestEveryFieldReachesTheAPIServer(t *testing.T) {
	const byGardenlet = "an object that gardenlet reads: its content comes in Files"
	everyfield.Run(t, everyfield.Suite[corev1beta1.KubeAPIServerConfig]{
		Base: func() *corev1beta1.KubeAPIServerConfig {
			return &corev1beta1.KubeAPIServerConfig{AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "PodNodeSelector"}}}
		},
		Render: func(t *testing.T, config *corev1beta1.KubeAPIServerConfig) string {
			v := full()
			v.Files, v.Config = Files{}, config
			objects, err := Objects(v)
			return everyfield.YAML(t, objects, err)
		},
		Values: map[string][2]any{
			"watchCacheSizes.resources[].apiGroup": {"some", "other"},
			"admissionPlugins[].config":            {selector("some"), selector("other")},
		},
		Exceptions: map[string]string{
			"admissionPlugins[].kubeconfigSecretName": byGardenlet,
			"auditConfig":              byGardenlet,
			"structuredAuthentication": byGardenlet,
			"structuredAuthorization":  byGardenlet,
			"encryptionConfig":         "comes in Encryption, as it needs keys",
			"watchCacheSizes.default":  "deprecated: the size adapts itself",
			"oidcConfig":               "deprecated, and refused from Kubernetes 1.32, which is the oldest",
		},
	})
}
