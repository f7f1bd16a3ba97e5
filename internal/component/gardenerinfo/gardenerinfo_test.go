package gardenerinfo

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/test/golden"
)

func TestConfigMap(t *testing.T) {
	object, err := ConfigMap(APIServer{
		Version: "v1.150.0", WorkloadIdentityIssuerURL: "https://discovery.example.com/garden/workload-identity/issuer",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "configmap.yaml", []client.Object{object})
}
