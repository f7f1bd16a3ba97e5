package backuprestore

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/membership"
)

// defragmenter frees disk space that databases do not use any more. Members are defragmented one after the other, as a member does not
// respond meanwhile.
type defragmenter struct {
	own      *clientv3.Client
	schedule cron.Schedule
	timeout  time.Duration
	clock    clock.Clock
	metrics  *metrics
}

// Run defragments all members by the schedule, until the context ends.
func (d *defragmenter) Run(ctx context.Context) {
	for {
		now := d.clock.Now().UTC()
		select {
		case <-d.clock.After(d.schedule.Next(now).Sub(now)):
		case <-ctx.Done():
			return
		}
		if err := d.defragment(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot defragment, retrying at the next time of the schedule")
		}
	}
}

// defragment stops at the first member that fails, because without two members there may be no quorum.
func (d *defragmenter) defragment(ctx context.Context) error {
	statusCtx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	status, err := d.own.Status(statusCtx, d.own.Endpoints()[0])
	if err != nil {
		return fmt.Errorf("read status of etcd: %w", err)
	}
	list, err := d.own.MemberList(statusCtx)
	if err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	for _, member := range membership.Followers(list.Members, status.Leader) {
		if len(member.ClientURLs) == 0 {
			return fmt.Errorf("member %x has not started", member.ID)
		}
		if err := d.one(ctx, member.Name, member.ClientURLs[0]); err != nil {
			return err
		}
	}
	return d.disarm(ctx)
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
