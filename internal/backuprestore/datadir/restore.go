package datadir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

const (
	// revisionBump is how far revisions jump with a restore. Clients may have seen revisions that the backup does not have. If these were used
	// again for other changes, the caches of clients would stay wrong. With the jump, their revisions are compacted, and they list again. The
	// value is the one that etcd's documentation recommends for Kubernetes.
	revisionBump = 1_000_000_000
	// orphanTTL is the time to live in seconds of leases that were granted after the full snapshot. Deltas have the lease of a key, but not its
	// time to live. An hour is as long as the longest-lived ones of Kubernetes, those of Events.
	orphanTTL = 3600
)

// ErrNoBackup is returned if no snapshot can be restored that reaches further than the current data.
var ErrNoBackup = errors.New("no backup can be restored")

// Restore is a restore of the data directory of a member.
type Restore struct {
	Store *snapstore.Store
	// DataDir is replaced, unless its data reaches as far as the backup that can be restored.
	DataDir string
	// Revision is the revision that valid data in it reaches, 0 if there is none.
	Revision int64
	// Member is the name of the member, the only one of the restored cluster.
	Member   string
	PeerURLs []string
	Token    string
}

// Run replaces the data directory by the latest backup, and returns the revision that it reaches. Damaged snapshots are
// left out: the changes before a damaged delta are restored, and if the latest full snapshot is damaged, the one before it.
func (r Restore) Run(ctx context.Context, log logr.Logger) (int64, error) {
	snapshots, err := r.Store.List(ctx)
	if err != nil {
		return 0, err
	}
	work := filepath.Clean(r.DataDir) + ".restoring"
	defer os.RemoveAll(work) //nolint:errcheck // it is removed before the next use as well
	errs := []error{ErrNoBackup}
	for {
		chains := snapshot.Chains(snapshots)
		if len(chains) == 0 || chains[0].LastRevision() <= r.Revision {
			return 0, errors.Join(errs...)
		}
		chain := chains[0] // none reaches further
		log.Info("Restoring backup", "fullSnapshot", chain.Full.Name(), "deltaSnapshots", len(chain.Deltas), "revision", chain.LastRevision())
		if err := os.RemoveAll(work); err != nil {
			return 0, err
		}
		if err := os.MkdirAll(work, 0o700); err != nil {
			return 0, err
		}
		revision, err := r.restore(ctx, chain, work)
		if err == nil {
			return revision, nil
		}
		var damaged *damagedError
		if !errors.As(err, &damaged) {
			return 0, err
		}
		log.Error(err, "Snapshot is damaged, restoring without it", "snapshot", damaged.snapshot.Name())
		errs = append(errs, err)
		snapshots = slices.DeleteFunc(snapshots, func(s snapshot.Snapshot) bool { return s == damaged.snapshot })
	}
}

// damagedError is an error about the content of a snapshot, not about its transfer.
type damagedError struct {
	snapshot snapshot.Snapshot
	error
}

func (d *damagedError) Unwrap() error { return d.error }

func (r Restore) restore(ctx context.Context, chain snapshot.Chain, work string) (int64, error) {
	database := filepath.Join(work, "snapshot.db")
	if err := r.fetchFull(ctx, chain.Full, database); err != nil {
		return 0, err
	}
	revision, err := r.applyDeltas(ctx, chain, database)
	if err != nil {
		return 0, err
	}
	restored := filepath.Join(work, "data")
	config := etcdsnapshot.RestoreConfig{
		SnapshotPath: database, SkipHashCheck: true, // it was verified by fetchFull, and changed since
		Name: r.Member, PeerURLs: r.PeerURLs, OutputDataDir: restored, InitialClusterToken: r.Token,
		RevisionBump: revisionBump, MarkCompacted: true,
	}
	for i, url := range r.PeerURLs {
		if i > 0 {
			config.InitialCluster += ","
		}
		config.InitialCluster += r.Member + "=" + url
	}
	if err := etcdsnapshot.NewV3(zap.NewNop()).Restore(config); err != nil {
		return 0, fmt.Errorf("create data directory: %w", err)
	}
	if err := os.RemoveAll(r.DataDir); err != nil {
		return 0, err
	}
	return revision, os.Rename(restored, r.DataDir)
}

// fetchFull writes the database in a full snapshot to a file, without etcd's checksum.
func (r Restore) fetchFull(ctx context.Context, full snapshot.Snapshot, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	return classify(ctx, full, r.Store.Read(ctx, full, func(content io.Reader) error {
		size, err := io.Copy(out, snapshot.Verified(content))
		if err != nil {
			return err
		}
		return errors.Join(out.Truncate(size-sha256.Size), out.Close())
	}))
}

// applyDeltas applies the changes in the deltas to the database of the full snapshot.
func (r Restore) applyDeltas(ctx context.Context, chain snapshot.Chain, file string) (revision int64, err error) {
	// The storage of etcd panics on a database that is damaged.
	defer func() {
		if p := recover(); p != nil {
			err = &damagedError{chain.Full, fmt.Errorf("database: %v", p)}
		}
	}()
	quiet := zap.NewNop()
	config := backend.DefaultBackendConfig(quiet)
	config.Path, config.UnsafeNoFsync = file, true // after a crash the restore starts again
	database := backend.New(config)
	defer database.Close() //nolint:errcheck // closed below
	lessor := lease.NewLessor(quiet, database, nil, lease.LessorConfig{})
	defer lessor.Stop()
	store := mvcc.NewStore(quiet, database, lessor, mvcc.StoreConfig{})
	replay := &replay{store: store, lessor: lessor}
	for _, delta := range chain.Deltas {
		err := r.Store.Read(ctx, delta, func(content io.Reader) error {
			if err := snapshot.ReadDelta(content, replay.add); err != nil {
				return err
			}
			return replay.flush() // a delta has all changes of its last revision
		})
		if err != nil {
			return 0, classify(ctx, delta, err)
		}
	}
	revision = store.Rev()
	store.Commit()
	return revision, store.Close()
}

// classify returns a damagedError for an error from reading a snapshot, unless it is about the store, the disk or a timeout: these must not
// make the restore leave out a snapshot.
func classify(ctx context.Context, s snapshot.Snapshot, err error) error {
	if disk := new(os.PathError); err == nil || ctx.Err() != nil || errors.Is(err, snapstore.ErrTransfer) || errors.As(err, &disk) {
		return err
	}
	return &damagedError{s, err}
}

// replay applies events to a store, all of one revision at once.
type replay struct {
	store   mvcc.KV
	lessor  lease.Lessor
	pending []*mvccpb.Event
}

func (r *replay) add(event *mvccpb.Event) error {
	if len(r.pending) > 0 && r.pending[0].Kv.ModRevision != event.Kv.ModRevision {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.pending = append(r.pending, event)
	return nil
}

func (r *replay) flush() error {
	events := r.pending
	r.pending = nil
	// A full snapshot may have some changes after the revision in its name, and deltas may overlap.
	if len(events) == 0 || events[0].Kv.ModRevision <= r.store.Rev() {
		return nil
	}
	for _, event := range events {
		id := lease.LeaseID(event.Kv.Lease)
		if id != lease.NoLease && r.lessor.Lookup(id) == nil {
			if _, err := r.lessor.Grant(id, orphanTTL); err != nil {
				return fmt.Errorf("grant lease %x: %w", event.Kv.Lease, err)
			}
		}
	}
	transaction := r.store.Write(traceutil.TODO())
	for _, event := range events {
		switch event.Type {
		case mvccpb.PUT:
			transaction.Put(event.Kv.Key, event.Kv.Value, lease.LeaseID(event.Kv.Lease))
		case mvccpb.DELETE:
			transaction.DeleteRange(event.Kv.Key, nil)
		}
	}
	transaction.End()
	if want := events[0].Kv.ModRevision; r.store.Rev() != want {
		return fmt.Errorf("changes of revision %d led to revision %d: some before it are missing", want, r.store.Rev())
	}
	return nil
}
