package startup

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

// known is a registry of a cluster of one member that had a backup, if it is the name of a Lease.
type known struct {
	Alone
	lease string
}

func (k known) KnownBackup(context.Context) (string, error) { return k.lease, nil }

// A store that is empty where there was a backup is not the store.
func TestStoreWithoutKnownBackup(t *testing.T) {
	for name, tc := range map[string]struct{ lease, fails string }{
		"the first start":    {},
		"there was a backup": {lease: "etcd-main-full-snap", fails: `Lease "etcd-main-full-snap" says that there was one`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := snapstore.Open(t.Context(), &backuprestoreconfigv1alpha1.Store{
				Provider: snapstore.Local, Container: filepath.Join(dir, "bucket"), Prefix: "etcd-main",
			})
			if err != nil {
				t.Fatal(err)
			}
			config := &backuprestoreconfigv1alpha1.BackupRestoreConfiguration{DataDir: filepath.Join(dir, "data")}
			config.Cluster.BootstrapMember = "etcd-main-0"
			s := &Startup{Config: config, Member: "etcd-main-0", Store: store, Registry: known{lease: tc.lease}}
			facts, _, err := s.facts(t.Context())
			if tc.fails == "" && (err != nil || Decide(facts) != New) {
				t.Errorf("facts are %+v: %v", facts, err)
			}
			if tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("facts() = %v", err)
			}
		})
	}
}
