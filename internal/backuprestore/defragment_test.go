package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// A database that has reached its quota rejects writes. After what fills it is deleted and compacted, the next defragmentation makes it
// writable again.
func TestDefragmentFullDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.member(0, func(config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		raw := strings.TrimSuffix(string(config.Etcd.Config.Raw), "}") + `,"quota-backend-bytes":4194304}`
		config.Etcd.Config = &runtime.RawExtension{Raw: []byte(raw)}
		config.Defragmentation = &backuprestoreconfigv1alpha1.Defragmentation{Schedule: "@every 1s"}
	})
	etcd := m.run()
	c.setReady(m.name)

	value := strings.Repeat("x", 512<<10)
	for i := 0; ; i++ {
		if i > 100 {
			t.Fatal("the quota is not enforced")
		}
		_, err := etcd.Put(t.Context(), fmt.Sprintf("fill/%d", i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deleted, err := etcd.Delete(t.Context(), "fill/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}

	c.eventually("etcd accepts writes", func(ctx context.Context) error {
		_, err := etcd.Put(ctx, "key", value)
		return err
	})
	c.eventually("no alarm is left", func(ctx context.Context) error {
		list, err := etcd.AlarmList(ctx)
		if err == nil && len(list.Alarms) > 0 {
			err = fmt.Errorf("alarms %v", list.Alarms)
		}
		return err
	})
}
