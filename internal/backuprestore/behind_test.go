package backuprestore

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"
	clocktesting "k8s.io/utils/clock/testing"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapshotter"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

// TestEtcdBehindItsBackup is about an etcd whose volumes were all replaced by older copies: it uses the revisions of its backup a second time. It is not
// reported as backed up, and the first backup afterwards has all of it.
func TestEtcdBehindItsBackup(t *testing.T) {
	t.Parallel()
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) { c.Store = nil })
	etcd := m.run()
	revision := put(t, etcd, "key", "before")
	store, err := snapstore.Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: snapstore.Local, Container: t.TempDir(), Prefix: "etcd-main"})
	if err != nil {
		t.Fatal(err)
	}
	stored := revision + 3
	for _, s := range []snapshot.Snapshot{
		{Kind: snapshot.Full, LastRevision: 1, CreatedOn: time.Unix(1, 0)},
		{Kind: snapshot.Delta, StartRevision: 2, LastRevision: stored, CreatedOn: time.Unix(2, 0)},
	} {
		if _, err := store.Write(t.Context(), s, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	type report struct {
		kind     snapshot.Kind
		revision int64
	}
	reports := make(chan report, 100)
	clock := clocktesting.NewFakeClock(time.Now())
	config := snapshotter.Config{
		FullSchedule: cron.Every(24 * time.Hour), FullTimeout: timeout, DeltaPeriod: time.Minute, DeltaMemoryLimit: 1 << 20, RequestTimeout: timeout,
	}
	s := snapshotter.New(config, etcd, store, clock, snapshotter.NewMetrics(prometheus.NewRegistry()), func(_ context.Context, kind snapshot.Kind, revision int64) {
		reports <- report{kind, revision}
	})
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), testr.New(t)))
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()

	m.eventually("the snapshotter waits", func(context.Context) error {
		if !clock.HasWaiters() {
			return errors.New("it does not")
		}
		return nil
	})
	for revision < stored { // the last one is that of the store
		revision = put(t, etcd, "key", "after")
	}
	clock.Step(time.Minute)
	select {
	case got := <-reports:
		if want := (report{snapshot.Full, revision}); got != want {
			t.Errorf("the first report is %v, want %v", got, want)
		}
	case <-time.After(timeout):
		t.Error("no snapshot was taken")
	}
}
