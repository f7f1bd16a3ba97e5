package backuprestore

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/membership"
)

// defragmenter returns disk space that databases do not use any more. A member does not answer meanwhile, so they take turns.
type defragmenter struct {
	own      *clientv3.Client
	schedule cron.Schedule
	timeout  time.Duration
	clock    clock.Clock
	metrics  *metrics
}

// Run defragments all members when it is time, until the context ends.
func (d *defragmenter) Run(ctx context.Context) {
	for {
		now := d.clock.Now().UTC()
		select {
		case <-d.clock.After(d.schedule.Next(now).Sub(now)):
		case <-ctx.Done():
			return
		}
		if err := d.defragment(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Defragmenting failed; it is tried again at the next time of the schedule")
		}
	}
}

// defragment stops at the first member that fails, because two that are away are too many.
func (d *defragmenter) defragment(ctx context.Context) error {
	ask, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	status, err := d.own.Status(ask, d.own.Endpoints()[0])
	if err != nil {
		return fmt.Errorf("ask for the leader: %w", err)
	}
	list, err := d.own.MemberList(ask)
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
	// It answers again before the next one's turn.
	if _, err := d.own.Status(ctx, url); err != nil {
		return fmt.Errorf("member %q after defragmenting: %w", name, err)
	}
	return nil
}
