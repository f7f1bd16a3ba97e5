package etcddruid

import (
	"testing"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(Values{
		Namespace: "garden", Image: "registry.example/gardener:v1", Replicas: 1,
		Config: etcddruidconfigv1alpha1.EtcdDruidConfiguration{
			Images: etcddruidconfigv1alpha1.Images{Etcd: "registry.example/etcd:v1", BackupRestore: "registry.example/gardener:v1"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Objects(t, "objects.yaml", objects)
}
