package startup

import (
	"gardener.cloud/gardener/internal/backuprestore/datadir"
)

// Action is what is done before etcd starts.
type Action string

const (
	// Start keeps the data.
	Start Action = "Start"
	// Restore replaces the data by the latest backup.
	Restore Action = "Restore"
	// New lets etcd form a new cluster without data.
	New Action = "New"
	// Join adds the member to the running cluster, without data.
	Join Action = "Join"
	// Wait waits until another member has data.
	Wait Action = "Wait"
)

// Facts are the observed state that an action is decided from.
type Facts struct {
	// Data is the state of the data directory, with Revision if it is valid.
	Data     datadir.State
	Revision int64
	// Members is the number of members that valid data has.
	Members int
	// BackupRevision is the revision that the latest backup reaches; 0 if there is none.
	BackupRevision int64
	// Bootstrap is set for the member that forms a new cluster.
	Bootstrap bool
	// OthersHaveData is set if another member has data, running or not.
	OthersHaveData bool
}

// Decide returns the action for the observed state.
func Decide(f Facts) Action {
	switch {
	case f.Data == datadir.Valid && (f.OthersHaveData || f.Members > 1 || f.Revision >= f.BackupRevision):
		// A member of several gets what it lacks from the others. They may have data although their Leases do not say it, as those are new. If it were
		// restored, it would be a cluster of its own beside that of the others.
		return Start
	case f.Data == datadir.Valid:
		// An older copy of the volume was restored: etcd would use revisions a second time for other changes.
		return Restore
	case f.OthersHaveData:
		// The cluster has everything that was acknowledged, unlike a backup. If it is not available now, the member waits for it: a second
		// cluster would be a split brain.
		return Join
	case !f.Bootstrap:
		return Wait
	case f.BackupRevision > 0:
		return Restore
	}
	return New
}
