package druid_test

import (
	"encoding/json"
	"testing"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/validation/druid"
)

// FuzzValidate reads every kind from arbitrary JSON: whatever a client sends is an error, not a panic.
func FuzzValidate(f *testing.F) {
	seed, err := json.Marshal(etcd())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"spec":{"config":{"onDemandSnapshot":{"type":"full"}},"sourceStore":{"prefix":"a"},"waitForFinalSnapshot":{"timeout":"1s"}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		e := etcd()
		if json.Unmarshal(data, e) == nil {
			druid.ValidateEtcdUpdate(e, etcd())
			druid.ValidateEtcdUpdate(etcd(), e)
		}
		task := &druidv1alpha1.EtcdOpsTask{}
		if json.Unmarshal(data, task) == nil {
			druid.ValidateEtcdOpsTask(task)
			druid.ValidateEtcdOpsTaskUpdate(task, &druidv1alpha1.EtcdOpsTask{})
		}
		backups := &druidv1alpha1.EtcdCopyBackupsTask{}
		if json.Unmarshal(data, backups) == nil {
			druid.ValidateEtcdCopyBackupsTask(backups)
		}
	})
}
