package gardenerapiserver

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, ClusterIdentity: "garden-example",
		EtcdServers: []string{"https://etcd-0:2379", "https://etcd-1:2379"}, EtcdSecret: "etcd-client", Certificate: "gardener-apiserver-0", CA: []byte("CA"), Args: []string{"--log-level=debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}
