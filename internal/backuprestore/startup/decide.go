package startup

import (
	"gardener.cloud/gardener/internal/backuprestore/datadir"
)

// Action is what is done before etcd starts.
type Action string

const (
	// Start leaves the data as it is.
	Start Action = "Start"
	// Restore replaces the data by the latest backup.
	Restore Action = "Restore"
	// New lets etcd form a new cluster without data.
	New Action = "New"
	// Join makes the member a new one of the running cluster.
	Join Action = "Join"
	// Wait waits until another member has data.
	Wait Action = "Wait"
)

// Facts are what the decision is made from.
type Facts struct {
	// Data is the state of the data directory, with Revision if it is valid.
	Data     datadir.State
	Revision int64
	// BackupRevision is the revision that the latest backup reaches; 0 if there is none.
	BackupRevision int64
	// Bootstrap says that this is the member that forms a new cluster.
	Bootstrap bool
	// OthersHaveData says that another member has data, running or not.
	OthersHaveData bool
}

// Decide says what to do.
func Decide(f Facts) Action {
	switch {
	case f.Data == datadir.Valid && (f.OthersHaveData || f.Revision >= f.BackupRevision):
		// What a member of several lacks it gets from the others.
		return Start
	case f.Data == datadir.Valid:
		// A volume was brought back to an earlier time: going on from there would give out revisions a second time.
		return Restore
	case f.OthersHaveData:
		// The cluster has everything that was acknowledged; a backup does not. If it cannot be reached now, it is
		// waited for: forming a second cluster would part them.
		return Join
	case !f.Bootstrap:
		return Wait
	case f.BackupRevision > 0:
		return Restore
	}
	return New
}
