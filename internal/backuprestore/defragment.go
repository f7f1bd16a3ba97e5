package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/membership"
)

// nearlyFull is the part of the quota that is left in a database which is defragmented before it is full: a tenth. reserve is the part that
// a full database must be able to free: a fiftieth. With less, it would be full again soon.
const nearlyFull, reserve = 10, 50

// defragmenter frees disk space that databases do not use any more. Members are defragmented one after the other, as a member does not
// respond meanwhile.
type defragmenter struct {
	own      *clientv3.Client
	schedule cron.Schedule
	timeout  time.Duration
	// period is how often it is checked whether a database is full, which does not wait for the schedule.
	period  time.Duration
	clock   clock.WithTicker
	metrics *metrics
	// compacted is the revision up to which a full database was compacted last.
	compacted int64
	// reported is whether the log says that a database is full of data.
	reported bool
	// unsettled is how many writes etcd has to commit until it reports what the last compaction has freed.
	unsettled int
}

// Run defragments all members by the schedule, and full ones at once, until the context ends.
func (d *defragmenter) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	ticker := d.clock.NewTicker(d.period)
	defer ticker.Stop()
	for {
		now := d.clock.Now().UTC()
		scheduled := d.clock.NewTimer(d.schedule.Next(now).Sub(now))
		for due := false; !due; {
			select {
			case <-scheduled.C():
				due = true
			case <-ticker.C():
				if err := d.relieve(ctx); err != nil && ctx.Err() == nil {
					log.Error(err, "Cannot defragment a full database, retrying", "after", d.period.String())
				}
			case <-ctx.Done():
				scheduled.Stop()
				return
			}
		}
		if err := d.defragment(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "Cannot defragment, retrying at the next time of the schedule")
		}
	}
}

// defragment defragments all members. It stops at the first one that fails, because without two members there may be no quorum.
func (d *defragmenter) defragment(ctx context.Context) error {
	members, err := d.members(ctx)
	if err != nil {
		return err
	}
	for _, member := range members {
		if err := d.one(ctx, member.Name, member.ClientURLs[0]); err != nil {
			return err
		}
	}
	return d.disarm(ctx)
}

// members returns the members of the cluster, the leader last.
func (d *defragmenter) members(ctx context.Context) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	status, err := d.own.Status(ctx, d.own.Endpoints()[0])
	if err != nil {
		return nil, fmt.Errorf("read status of etcd: %w", err)
	}
	list, err := d.own.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	members := membership.Followers(list.Members, status.Leader)
	for _, member := range members {
		if len(member.ClientURLs) == 0 {
			return nil, fmt.Errorf("member %x has not started", member.ID)
		}
	}
	return members, nil
}

// relieve defragments members whose database is full or nearly so, if that frees space, and ends the alarm. A database is compacted first that
// has the alarm: otherwise, deleted data takes space until the next regular compaction.
func (d *defragmenter) relieve(ctx context.Context) error {
	members, err := d.members(ctx)
	if err != nil {
		return err
	}
	alarmed, err := d.alarmed(ctx)
	if err != nil {
		return err
	}
	if !alarmed {
		d.reported = false
	} else if err := d.compact(ctx); err != nil {
		return err
	}
	full := false
	for _, member := range members {
		status, err := d.status(ctx, member)
		if err != nil {
			return err
		}
		if worthwhile(status, alarmed) {
			logr.FromContextOrDiscard(ctx).Info("Defragmenting a full database", "member", member.Name, "size", status.DbSize, "used", status.DbSizeInUse)
			if err := d.one(ctx, member.Name, member.ClientURLs[0]); err != nil {
				return err
			}
			if status, err = d.status(ctx, member); err != nil {
				return err
			}
		}
		full = full || status.DbSize > status.DbSizeQuota-status.DbSizeQuota/reserve
	}
	switch {
	case !alarmed:
		return nil
	case !full:
		return d.disarm(ctx)
	case d.unsettled > 0:
		// etcd counts the pages that a transaction freed when the next but one commits, and commits nothing while all writes are rejected.
		// Disarming is a write. The alarm is raised again by the next write of a client.
		d.unsettled--
		return d.disarm(ctx)
	case !d.reported:
		d.reported = true
		logr.FromContextOrDiscard(ctx).Info("The database is full of data that is in use; writes are rejected until objects are deleted or the quota is raised")
	}
	return nil
}

// worthwhile is whether a database is so full, and has so much space to free, that it is defragmented at once. After that, it is not. etcd
// reports the quota from version 3.6 on.
func worthwhile(status *clientv3.StatusResponse, alarmed bool) bool {
	free, quota := status.DbSize-status.DbSizeInUse, status.DbSizeQuota
	if alarmed {
		return quota > 0 && free >= quota/reserve
	}
	return quota > 0 && status.DbSize >= quota-quota/nearlyFull && free >= quota/nearlyFull
}

// status returns the status of a member.
func (d *defragmenter) status(ctx context.Context, member *etcdserverpb.Member) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	status, err := d.own.Status(ctx, member.ClientURLs[0])
	if err != nil {
		return nil, fmt.Errorf("read status of member %q: %w", member.Name, err)
	}
	return status, nil
}

// alarmed is whether a member has raised the alarm that its database is full.
func (d *defragmenter) alarmed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	list, err := d.own.AlarmList(ctx)
	if err != nil {
		return false, fmt.Errorf("list alarms: %w", err)
	}
	return slices.ContainsFunc(list.Alarms, func(alarm *etcdserverpb.AlarmMember) bool { return alarm.Alarm == etcdserverpb.AlarmType_NOSPACE }), nil
}

// compact deletes the history of the database, if something has changed since the last time. Clients that watch from an older revision, such
// as the snapshotter, read everything again.
func (d *defragmenter) compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	status, err := d.own.Status(ctx, d.own.Endpoints()[0])
	if err != nil {
		return fmt.Errorf("read status of etcd: %w", err)
	}
	revision := status.Header.Revision
	if revision <= d.compacted {
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Compacting a full database", "revision", revision)
	if _, err := d.own.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact up to revision %d: %w", revision, err)
	}
	d.compacted, d.unsettled = revision, 2
	return nil
}

// disarm ends the alarms that the databases are full, which etcd does not do by itself: it rejects writes until then, and raises the alarm
// again at the next write if a database is still full. Other alarms, such as that of a corrupt database, stay.
func (d *defragmenter) disarm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	list, err := d.own.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list alarms: %w", err)
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("Disarming the alarm of a full database", "memberID", fmt.Sprintf("%x", alarm.MemberID))
		if _, err := d.own.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("disarm alarm %s of member %x: %w", alarm.Alarm, alarm.MemberID, err)
		}
	}
	return nil
}

func (d *defragmenter) one(ctx context.Context, name, url string) (err error) {
	logr.FromContextOrDiscard(ctx).Info("Defragmenting", "member", name)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	started := d.clock.Now()
	defer func() { d.metrics.defragmented(d.clock.Since(started), err) }()
	if _, err := d.own.Defragment(ctx, url); err != nil {
		return fmt.Errorf("defragment member %q: %w", name, err)
	}
	// It has to respond again before the next member is defragmented.
	if _, err := d.own.Status(ctx, url); err != nil {
		return fmt.Errorf("member %q after defragmenting: %w", name, err)
	}
	return nil
}
