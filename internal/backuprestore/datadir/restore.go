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
	"syscall"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	etcddatadir "go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
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
	// InitialCluster is etcd's setting for a cluster of this member.
	InitialCluster string
	Token          string
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
		if errors.Is(err, syscall.ENOSPC) {
			if err := r.makeSpace(log, err); err != nil {
				return 0, err
			}
			continue
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

// makeSpace deletes data that etcd cannot start with, where it leaves no space for the restored one.
func (r Restore) makeSpace(log logr.Logger, cause error) error {
	found, err := exists(r.DataDir)
	if err != nil {
		return err
	}
	if !found || r.Revision > 0 {
		return fmt.Errorf("the volume has no space for the backup: enlarge spec.storageCapacity of the Etcd: %w", cause)
	}
	log.Info("Deleting the damaged data: the volume has no space for the restored data beside it", "cause", cause.Error())
	return os.RemoveAll(r.DataDir)
}

// damagedError is an error about the content of a snapshot, not about its transfer.
type damagedError struct {
	snapshot snapshot.Snapshot
	error
}

func (d *damagedError) Unwrap() error { return d.error }

func (r Restore) restore(ctx context.Context, chain snapshot.Chain, work string) (int64, error) {
	restored := filepath.Join(work, "data")
	if err := r.createMember(work, restored); err != nil {
		return 0, fmt.Errorf("create data directory: %w", err)
	}
	file := etcddatadir.ToBackendFileName(restored)
	member, err := readMember(file)
	if err != nil {
		return 0, fmt.Errorf("read created data directory: %w", err)
	}
	if err := os.Remove(file); err != nil {
		return 0, err
	}
	if err := r.fetchFull(ctx, chain.Full, file); err != nil {
		return 0, err
	}
	if err := r.checkSpace(file); err != nil {
		return 0, err
	}
	revision, err := r.complete(ctx, chain, file, member)
	if err != nil {
		return 0, err
	}
	if err := os.RemoveAll(r.DataDir); err != nil {
		return 0, err
	}
	return revision, os.Rename(restored, r.DataDir)
}

// createMember creates the data directory of a cluster of this member. Its database has the member and no keys: the volume has no space for a
// second copy of a large database, which etcd's own restore makes.
func (r Restore) createMember(work, dataDir string) error {
	empty := filepath.Join(work, "empty.db")
	database := openDatabase(empty)
	schema.NewMembershipBackend(fatalOnly, database).MustCreateBackendBuckets()
	schema.CreateMetaBucket(database.BatchTx())
	if err := database.Close(); err != nil {
		return err
	}
	return etcdsnapshot.NewV3(fatalOnly).Restore(etcdsnapshot.RestoreConfig{
		SnapshotPath: empty, SkipHashCheck: true, // it has no checksum
		Name: r.Member, PeerURLs: r.PeerURLs, OutputDataDir: dataDir, InitialCluster: r.InitialCluster, InitialClusterToken: r.Token,
	})
}

// member is what the database of a member has about its cluster. It belongs to the write-ahead log beside it.
type member struct {
	members     map[types.ID]*membership.Member
	index, term uint64
}

func readMember(file string) (member, error) {
	database := openDatabase(file)
	m := member{}
	m.members, _ = schema.NewMembershipBackend(fatalOnly, database).MustReadMembersFromBackend()
	m.index, m.term = schema.ReadConsistentIndex(database.ReadTx())
	return m, database.Close()
}

// writeTo replaces what the database has about another cluster.
func (m member) writeTo(database backend.Backend) error {
	about := schema.NewMembershipBackend(fatalOnly, database)
	if err := about.TrimMembershipFromBackend(); err != nil {
		return err
	}
	for _, each := range m.members {
		about.MustSaveMemberToBackend(each)
	}
	cindex.UpdateConsistentIndexForce(database.BatchTx(), m.index, m.term)
	return nil
}

// bump makes the database start at a later revision, with all until then compacted.
func bump(database backend.Backend, revision int64) {
	transaction := database.BatchTx()
	transaction.LockOutsideApply()
	defer transaction.Unlock()
	revision += revisionBump
	transaction.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: revision}, mvcc.NewRevBytes()), nil)
	mvcc.UnsafeSetScheduledCompact(transaction, revision)
}

// fatalOnly is the logger for what etcd's packages end the process with, such as a disk that is full.
var fatalOnly = zap.Must(zap.Config{
	Level: zap.NewAtomicLevelAt(zap.FatalLevel), Encoding: "json", EncoderConfig: zap.NewProductionEncoderConfig(), OutputPaths: []string{"stderr"},
}.Build())

func openDatabase(file string) backend.Backend {
	config := backend.DefaultBackendConfig(fatalOnly)
	config.Path, config.UnsafeNoFsync = file, true // after a crash the restore starts again
	return backend.New(config)
}

// checkSpace fails if the deltas may need more space than there is and data can be deleted for it: a full volume ends the process.
func (r Restore) checkSpace(file string) error {
	const part = 8 // of the database, at least, for the deltas
	found, err := exists(r.DataDir)
	if err != nil || !found {
		return err
	}
	database, err := os.Stat(file)
	if err != nil {
		return err
	}
	volume := syscall.Statfs_t{}
	if err := syscall.Statfs(file, &volume); err != nil {
		return &os.PathError{Op: "statfs", Path: file, Err: err}
	}
	if free := volume.Bavail * uint64(volume.Bsize); r.Revision == 0 && free < uint64(database.Size())/part {
		return fmt.Errorf("%d bytes are left for the delta snapshots: %w", free, syscall.ENOSPC)
	}
	return nil
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

// complete applies the changes in the deltas to the database of the full snapshot, and makes it the database of the member.
func (r Restore) complete(ctx context.Context, chain snapshot.Chain, file string, m member) (revision int64, err error) {
	// The storage of etcd panics on a database that is damaged. It may hold its lock then, so it is not closed.
	defer func() {
		if p := recover(); p != nil {
			err = &damagedError{chain.Full, fmt.Errorf("database: %v", p)}
		}
	}()
	database := openDatabase(file)
	revision, err = r.applyDeltas(ctx, chain, database)
	if err == nil {
		bump(database, revision)
		err = m.writeTo(database)
	}
	return revision, errors.Join(err, database.Close(), sync(file))
}

// sync ensures that the file is on the disk before it is used.
func sync(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// applyDeltas applies the changes in the deltas and returns the revision that they lead to.
func (r Restore) applyDeltas(ctx context.Context, chain snapshot.Chain, database backend.Backend) (int64, error) {
	lessor := lease.NewLessor(fatalOnly, database, nil, lease.LessorConfig{})
	store := mvcc.NewStore(fatalOnly, database, lessor, mvcc.StoreConfig{})
	replay := &replay{store: store, lessor: lessor}
	for _, delta := range chain.Deltas {
		err := r.Store.Read(ctx, delta, func(content io.Reader) error {
			if err := snapshot.ReadDelta(content, replay.add); err != nil {
				return err
			}
			return replay.flush() // a delta has all changes of its last revision
		})
		if err != nil {
			return 0, errors.Join(classify(ctx, delta, err), closeStore(store, lessor))
		}
	}
	return store.Rev(), closeStore(store, lessor)
}

func closeStore(store mvcc.KV, lessor lease.Lessor) error {
	lessor.Stop()
	return store.Close()
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
