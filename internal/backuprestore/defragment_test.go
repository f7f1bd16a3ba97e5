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

// A database that has reached its quota rejects writes. After what fills it is deleted, it is writable again without waiting for the time of the
// schedule, or for a compaction.
func TestDefragmentFullDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.member(0, func(config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		raw := strings.TrimSuffix(string(config.Etcd.Config.Raw), "}") + `,"quota-backend-bytes":4194304}`
		config.Etcd.Config = &runtime.RawExtension{Raw: []byte(raw)}
		config.Defragmentation = &backuprestoreconfigv1alpha1.Defragmentation{Schedule: "0 0 29 2 *"}
	})
	etcd := m.run()
	c.setReady(m.name)

	value := strings.Repeat("x", 512<<10)
	for round := range 2 {
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
		if _, err := etcd.Delete(t.Context(), "fill/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		c.eventually(fmt.Sprintf("etcd accepts writes, round %d", round), func(ctx context.Context) error {
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
}

// A database that is full of data is not defragmented again and again, as its member does not respond meanwhile.
func TestWorthwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		size, used, quota int64
		alarmed, want     bool
	}{
		"plenty of space":                   {size: 500, used: 100, quota: 1000},
		"nearly full, of old data":          {size: 900, used: 500, quota: 1000, want: true},
		"nearly full, of data":              {size: 900, used: 850, quota: 1000},
		"full, with little to free":         {size: 1000, used: 950, quota: 1000, alarmed: true, want: true},
		"full of data":                      {size: 1000, used: 990, quota: 1000, alarmed: true},
		"after it was defragmented":         {size: 500, used: 500, quota: 1000, alarmed: true},
		"of an etcd that reports no quota":  {size: 1000, used: 100},
		"the alarm of a member without one": {size: 1000, used: 100, alarmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			status := &clientv3.StatusResponse{DbSize: tc.size, DbSizeInUse: tc.used, DbSizeQuota: tc.quota}
			if got := worthwhile(status, tc.alarmed); got != tc.want {
				t.Errorf("worthwhile() = %t, want %t", got, tc.want)
			}
		})
	}
}
