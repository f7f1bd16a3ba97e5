// Package datadir checks, restores and replaces the data directory of an etcd that is not running.
package datadir

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	etcddatadir "go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// State is the state of a data directory.
type State string

const (
	// Valid data can be used: etcd starts with it.
	Valid State = "Valid"
	// Missing is the state without any data.
	Missing State = "Missing"
	// Corrupt data is damaged in a way that etcd cannot repair.
	Corrupt State = "Corrupt"
)

// ErrInUse is returned if an etcd is running on the data.
var ErrInUse = errors.New("the database is in use")

// lockTimeout is how long a database that is being closed may stay locked.
const lockTimeout = 2 * time.Second

// Check is the result of the validation of a data directory.
type Check struct {
	State State
	// Revision is the revision that valid data reaches at most, once etcd has replayed its log.
	Revision int64
	// Members is the number of members of the cluster, as valid data has them.
	Members int
	// Reason is why the data is corrupt.
	Reason string
}

// Validate validates a data directory. After an error the state is unknown, and nothing may be deleted.
func Validate(ctx context.Context, dir string) (Check, error) {
	database, walDir := etcddatadir.ToBackendFileName(dir), etcddatadir.ToWALDir(dir)
	hasDatabase, err := exists(database)
	if err != nil {
		return Check{}, err
	}
	hasWAL := wal.Exist(walDir)
	switch {
	case !hasDatabase && !hasWAL:
		return Check{State: Missing}, nil
	case !hasDatabase:
		return Check{State: Corrupt, Reason: "there is a write-ahead log, but no database"}, nil
	case !hasWAL:
		// An etcd that is starting, or is connecting to the others, creates the log after the database.
		if _, err := readDatabase(ctx, database); errors.Is(err, bolterrors.ErrTimeout) {
			return Check{}, fmt.Errorf("%s: %w", database, ErrInUse)
		}
		return Check{State: Corrupt, Reason: "there is a database, but no write-ahead log"}, nil
	}
	found, err := readDatabase(ctx, database)
	var logged uint64
	if err == nil {
		logged, err = readWAL(dir)
	}
	var path *os.PathError
	switch {
	case err == nil:
		if logged > found.applied {
			found.revision += int64(logged - found.applied) // an entry adds one revision at most
		}
		return Check{State: Valid, Revision: found.revision, Members: found.members}, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return Check{}, fmt.Errorf("%s: %w", database, ErrInUse)
	case errors.As(err, &path), ctx.Err() != nil:
		return Check{}, err // about the disk or a timeout, not about the data
	}
	return Check{State: Corrupt, Reason: err.Error()}, nil
}

// contents are what is read from a database: the latest revision, the last entry of the log that is in it, and the number of members.
type contents struct {
	revision int64
	applied  uint64
	members  int
}

// readDatabase reads every key, as etcd does when it starts.
func readDatabase(ctx context.Context, file string) (found contents, err error) {
	// Damage shows as panics of the database, and as faults where a file ends too early for its memory map.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("database: %v", r)
		}
	}()
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return found, fmt.Errorf("open database: %w", err)
	}
	defer db.Close()   //nolint:errcheck // opened for reading
	found.revision = 1 // of an etcd without keys
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
			isKeys, isMeta := string(name) == string(schema.Key.Name()), string(name) == string(schema.Meta.Name())
			return bucket.ForEach(func(key, value []byte) error {
				if string(name) == string(schema.Members.Name()) {
					found.members++
				}
				if isMeta && string(key) == string(schema.MetaConsistentIndexKeyName) {
					found.applied = binary.BigEndian.Uint64(value)
				}
				if !isKeys {
					return nil
				}
				var kv mvccpb.KeyValue
				if err := kv.Unmarshal(value); err != nil {
					return fmt.Errorf("database: value of revision %x: %w", key, err)
				}
				found.revision = max(found.revision, mvcc.BytesToRev(key).Main)
				return ctx.Err()
			})
		})
	})
	return found, err
}

// readWAL reads what etcd replays when it starts, and returns the last entry.
func readWAL(dir string) (last uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("write-ahead log: %v", r)
		}
	}()
	quiet := zap.NewNop()
	walDir := etcddatadir.ToWALDir(dir)
	snapshots, err := wal.ValidSnapshotEntries(quiet, walDir)
	if err != nil {
		return 0, fmt.Errorf("write-ahead log: %w", err)
	}
	start := walpb.Snapshot{}
	latest, err := snap.New(quiet, etcddatadir.ToSnapDir(dir)).LoadNewestAvailable(snapshots)
	switch {
	case err == nil:
		start.Index, start.Term = latest.Metadata.Index, latest.Metadata.Term
	case !errors.Is(err, snap.ErrNoSnapshot):
		return 0, fmt.Errorf("raft snapshots: %w", err)
	}
	log, err := wal.OpenForRead(quiet, walDir, start)
	if err != nil {
		return 0, fmt.Errorf("write-ahead log: %w", err)
	}
	defer log.Close() //nolint:errcheck // opened for reading
	_, _, entries, err := log.ReadAll()
	if err != nil {
		return 0, fmt.Errorf("write-ahead log: %w", err)
	}
	if len(entries) == 0 {
		return start.Index, nil
	}
	return entries[len(entries)-1].Index, nil
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// asideSuffix is appended to the name of a corrupt data directory, which is kept for the operator.
const asideSuffix = ".corrupt"

// SetAside renames a data directory. One that was set aside before is removed.
func SetAside(dir string) error {
	aside := filepath.Clean(dir) + asideSuffix
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(dir, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
