package gardenerapiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 2, ClusterIdentity: "garden-example",
		EtcdServers: []string{"https://etcd-0:2379", "https://etcd-1:2379"}, EtcdSecret: "etcd-client", Certificate: "gardener-apiserver-0", CA: []byte("CA"),
		EncryptionKeys: []encryption.Key{{Name: "key1", Secret: []byte("01234567890123456789012345678901")}}, Args: []string{"--log-level=debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}

func TestNoEncryptionWithoutKeys(t *testing.T) {
	objects, err := Objects(Values{Namespace: "garden", Image: "i", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			t.Errorf("Secret %s is deployed", secret.Name)
		}
	}
}
