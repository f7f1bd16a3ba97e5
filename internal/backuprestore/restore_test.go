package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

func TestDataIsRestored(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	c := m.run()

	lease, err := c.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		put(t, c, fmt.Sprintf("first/%03d", i), strings.Repeat("x", i))
	}
	t.Log("full snapshot:", m.post("/snapshot/full"))
	put(t, c, "leased", "value", clientv3.WithLease(lease.ID))
	for i := range 100 {
		put(t, c, fmt.Sprintf("second/%03d", i), "y")
	}
	if _, err := c.Delete(t.Context(), "first/05", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Txn(t.Context()).Then(clientv3.OpPut("txn/a", "1"), clientv3.OpPut("txn/b", "2"), clientv3.OpDelete("second/001")).Commit(); err != nil {
		t.Fatal(err)
	}
	last := put(t, c, "last", "acknowledged")
	want := content(t, c)
	t.Log("delta snapshot:", m.post("/snapshot/delta"))
	m.kill()
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}

	c = m.run()
	if diff := cmp.Diff(want, content(t, c)); diff != "" {
		t.Errorf("restored content (-want +got):\n%s", diff)
	}
	response, err := c.Get(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	if kv := response.Kvs[0]; kv.ModRevision != last {
		t.Errorf("key was changed at revision %d, want %d", kv.ModRevision, last)
	}
	if response.Header.Revision < last+1_000_000 {
		t.Errorf("revision %d does not leave room for revisions that were lost", response.Header.Revision)
	}
	ttl, err := c.TimeToLive(t.Context(), lease.ID, clientv3.WithAttachedKeys())
	if err != nil || ttl.TTL <= 0 || len(ttl.Keys) != 1 {
		t.Errorf("lease after the restore: %+v, %v; want one key that will expire", ttl, err)
	}

	// Backups continue after the restore, so that another loss is restored as well.
	put(t, c, "after", "restore")
	want = content(t, c)
	m.post("/snapshot/delta")
	m.kill()
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, content(t, m.run())); diff != "" {
		t.Errorf("content restored a second time (-want +got):\n%s", diff)
	}
}

// TestLossIsWithinADelta kills etcd under writes and compares the acknowledged keys with the restored ones.
func TestLossIsWithinADelta(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	c := m.run()
	m.post("/snapshot/full")
	var acknowledged []int64 // the revision of key i
	started := time.Now()
	store := openStore(t, m)
	latest := func() snapshot.Chain {
		snapshots, err := store.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Chains(snapshots)[0]
	}
	for time.Since(started) < 4*time.Second || len(latest().Deltas) == 0 {
		if time.Since(started) > time.Minute {
			t.Fatal("no delta snapshot was taken")
		}
		acknowledged = append(acknowledged, put(t, c, fmt.Sprintf("key/%06d", len(acknowledged)), "value"))
	}
	m.kill()
	killed := time.Now()
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}
	chain := latest()
	restored := content(t, m.run())
	lost := 0
	for i, revision := range acknowledged {
		_, found := restored[fmt.Sprintf("key/%06d", i)]
		if want := revision <= chain.LastRevision(); found != want {
			t.Fatalf("key %d of revision %d is restored: %t; backups reach revision %d", i, revision, found, chain.LastRevision())
		}
		if !found {
			lost++
		}
	}
	t.Logf("%d of %d acknowledged writes were lost; the last of %d delta snapshots was %s old", lost, len(acknowledged), len(chain.Deltas),
		killed.Sub(chain.Deltas[len(chain.Deltas)-1].CreatedOn))
}

// TestChangesWithoutASnapshotAreBackedUpAtOnce is about changes after the last snapshot of the sidecar before, such as before a hibernation.
func TestChangesWithoutASnapshotAreBackedUpAtOnce(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		c.Snapshots.DeltaPeriod = &metav1.Duration{Duration: time.Hour}
	})
	c := m.run()
	m.post("/snapshot/full")
	revision := put(t, c, "key", "value")
	m.kill()
	m.run()
	store := openStore(t, m)
	m.eventually("the change is in the store", func(ctx context.Context) error {
		snapshots, err := store.List(ctx)
		if err != nil {
			return err
		}
		if last := snapshot.Chains(snapshots)[0].LastRevision(); last < revision {
			return fmt.Errorf("backups reach revision %d, want %d", last, revision)
		}
		return nil
	})
}

func TestDamageIsRepaired(t *testing.T) {
	overwrite := func(file string, offset, length int64) error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte(strings.Repeat("\xde\xad\xbe\xef", int(length/4))), offset)
		return errors.Join(err, f.Close())
	}
	wal := func(m *member) string {
		files, err := filepath.Glob(filepath.Join(m.config.DataDir, "member", "wal", "*-*.wal"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no write-ahead log: %v", err)
		}
		return files[0]
	}
	database := func(m *member) string { return filepath.Join(m.config.DataDir, "member", "snap", "db") }
	for name, damage := range map[string]func(*member) error{
		"database overwritten": func(m *member) error { return overwrite(database(m), 0, 1<<16) },
		"database has holes":   func(m *member) error { return overwrite(database(m), 4*4096, 1<<18) },
		"database cut off":     func(m *member) error { return os.Truncate(database(m), 5*4096) },
		"database missing":     func(m *member) error { return os.Remove(database(m)) },
		"log overwritten":      func(m *member) error { return overwrite(wal(m), 2048, 4096) },
		"log missing":          func(m *member) error { return os.RemoveAll(filepath.Dir(wal(m))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newCluster(t).member(0)
			c := m.run()
			for i := range 500 {
				put(t, c, fmt.Sprintf("key/%03d", i), strings.Repeat("x", 1000))
			}
			want := content(t, c)
			m.post("/snapshot/delta")
			m.kill()
			if err := damage(m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, content(t, m.run())); diff != "" {
				t.Errorf("repaired content (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunningSidecarRepairs is about a container of etcd that cannot start any more, while its pod keeps running.
func TestRunningSidecarRepairs(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		c.LeaderElection.Timeout = &metav1.Duration{Duration: 2 * time.Second} // it has to pass three times
	})
	c := m.run()
	put(t, c, "key", "value")
	want := content(t, c)
	m.post("/snapshot/delta")
	m.killEtcd()
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}
	// However often its container restarts, etcd must not form a new cluster.
	restarts, stopRestarts := context.WithCancel(t.Context())
	defer stopRestarts()
	running := make(chan error)
	go func() {
		for {
			etcd := exec.CommandContext(restarts, m.cluster.etcd, "--config-file="+m.config.Etcd.ConfigFile)
			if err := etcd.Run(); restarts.Err() != nil {
				running <- err
				return
			}
		}
	}()
	defer func() {
		stopRestarts()
		<-running //nolint:errcheck // it was killed
	}()
	if diff := cmp.Diff(want, content(t, m.client())); diff != "" {
		t.Errorf("repaired content (-want +got):\n%s", diff)
	}
}

func TestValidDataIsKept(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) { c.Store = nil })
	c := m.run()
	want := put(t, c, "key", "value")
	m.kill()
	c = m.run()
	response, err := c.Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Revision; got != want {
		t.Errorf("revision is %d after a restart, was %d", got, want)
	}
}

// TestOldVolumeIsReplaced is about an older copy of a volume.
func TestOldVolumeIsReplaced(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	c := m.run()
	put(t, c, "key", "old")
	m.post("/snapshot/full")
	m.kill()
	old := m.config.DataDir + ".old"
	if err := os.CopyFS(old, os.DirFS(m.config.DataDir)); err != nil {
		t.Fatal(err)
	}
	c = m.run()
	put(t, c, "key", "new")
	m.post("/snapshot/delta")
	m.kill()
	if err := errors.Join(os.RemoveAll(m.config.DataDir), os.Rename(old, m.config.DataDir)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"key": "new"}, content(t, m.run())); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

// TestOldVolumeIsBetterThanADamagedBackup is about an older copy of a volume, and a damaged backup that reaches less far.
func TestOldVolumeIsBetterThanADamagedBackup(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	c := m.run()
	m.post("/snapshot/full")
	put(t, c, "key", "old")
	m.post("/snapshot/delta")
	m.kill()
	old := m.config.DataDir + ".old"
	if err := os.CopyFS(old, os.DirFS(m.config.DataDir)); err != nil {
		t.Fatal(err)
	}
	c = m.run()
	put(t, c, "key", "new")
	m.post("/snapshot/delta")
	m.kill()
	deltas, err := filepath.Glob(filepath.Join(m.config.Store.Container, "etcd-main", "v2", "Incr-*"))
	if err != nil || len(deltas) < 2 {
		t.Fatalf("%d delta snapshots: %v", len(deltas), err)
	}
	if err := errors.Join(overwriteEnd(slices.Min(deltas)), os.RemoveAll(m.config.DataDir), os.Rename(old, m.config.DataDir)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"key": "old"}, content(t, m.run())); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

// TestLargeDatabaseIsRestoredOnItsVolume is about a database that is larger than half of its volume, which is lost or damaged.
func TestLargeDatabaseIsRestoredOnItsVolume(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a volume")
	}
	m := newCluster(t).member(0)
	c := m.run()
	value := strings.Repeat("x", 1<<20)
	for i := range 120 {
		put(t, c, fmt.Sprintf("key/%03d", i), value)
	}
	m.post("/snapshot/full")
	put(t, c, "last", "acknowledged")
	m.post("/snapshot/delta")
	m.kill()
	volume := filepath.Dir(m.config.DataDir)
	mount(t, volume, "size=290m") // 120 for the database, and twice 64 for write-ahead logs
	for _, loss := range []struct {
		of string
		do func() error
	}{
		{"the volume", func() error { return nil }},
		{"the end of the database", func() error { return os.Truncate(filepath.Join(m.config.DataDir, "member", "snap", "db"), 110<<20) }},
	} {
		if err := loss.do(); err != nil {
			t.Fatal(err)
		}
		c := m.run()
		response, err := c.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || response.Count != 121 {
			t.Errorf("%d keys after the loss of %s, want 121 (%v)", response.Count, loss.of, err)
		}
		m.kill()
	}

	// A volume that is too small says so.
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", volume, "", syscall.MS_REMOUNT, "size=100m"); err != nil {
		t.Fatal(err)
	}
	if err := m.initialize(); err == nil || !strings.Contains(err.Error(), "spec.storageCapacity") {
		t.Errorf("error of a volume that is too small: %v", err)
	}
}

// TestUnreachableStoreStopsAnEmptyEtcd is about an etcd without data whose backup cannot be read.
func TestUnreachableStoreStopsAnEmptyEtcd(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	if err := os.WriteFile(m.config.Store.Container, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.initialize(); err == nil {
		t.Error("initialize succeeded")
	}
	if _, err := os.Stat(m.config.Etcd.ConfigFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("etcd may start: %v", err)
	}
}

// mount mounts a file system of limited size on a directory.
func mount(t *testing.T, directory, options string) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("volume", directory, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(directory, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func openStore(t *testing.T, m *member) *snapstore.Store {
	t.Helper()
	store, err := snapstore.Open(t.Context(), m.config.Store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
	return store
}

// TestKilledEtcdKeepsItsLog is about an etcd that is killed while its database is older than a backup: its log is newer
// still, and must not be replaced by the backup.
func TestKilledEtcdKeepsItsLog(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		// The database is written every hour instead of ten times a second.
		c.Etcd.Config.Raw = []byte(strings.Replace(string(c.Etcd.Config.Raw), "{", `{"backend-batch-interval":3600000000000,`, 1))
	})
	c := m.run()
	m.post("/snapshot/full")
	for i := range 20 {
		put(t, c, fmt.Sprintf("before/%03d", i), "value")
	}
	m.post("/snapshot/delta")
	for i := range 20 {
		put(t, c, fmt.Sprintf("after/%03d", i), "value")
	}
	want := content(t, c)
	m.kill()
	if diff := cmp.Diff(want, content(t, m.run())); diff != "" {
		t.Errorf("content after a kill (-want +got):\n%s", diff)
	}
}

func TestDefragmentation(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0)
	c := m.run()
	for i := range 200 {
		put(t, c, fmt.Sprintf("key/%03d", i), strings.Repeat("x", 20_000))
	}
	response, err := c.Delete(t.Context(), "key/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), response.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		status, err := c.Status(t.Context(), c.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		return status.DbSize
	}
	before := size()
	registry := prometheus.NewRegistry()
	d := &defragmenter{own: c, timeout: timeout, clock: clock.RealClock{}, metrics: newMetrics(registry)}
	if err := d.defragment(m.ctx()); err != nil {
		t.Fatal(err)
	}
	if after := size(); after > before/2 {
		t.Errorf("the database has %d bytes, before it had %d", after, before)
	}
	if n := testutil.CollectAndCount(d.metrics.defragmentation); n != 1 {
		t.Errorf("%d series of defragmentations", n)
	}
}
