package snapshotter

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

// Collector deletes the snapshots that the retention does not keep.
type Collector struct {
	Store     *snapstore.Store
	Retention snapshot.Retention
	Period    time.Duration
	Clock     clock.WithTicker
	Metrics   *Metrics
}

// Run collects garbage at once and then each period, until the context ends.
func (c *Collector) Run(ctx context.Context) {
	ticker := c.Clock.NewTicker(c.Period)
	defer ticker.Stop()
	for {
		if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot collect garbage, retrying", "after", c.Period)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// Collect deletes the snapshots that are garbage now.
func (c *Collector) Collect(ctx context.Context) error {
	snapshots, err := c.Store.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range snapshot.Garbage(snapshots, c.Retention, c.Clock.Now()) {
		logr.FromContextOrDiscard(ctx).V(1).Info("Deleting snapshot", "name", s.Name())
		err := c.Store.Delete(ctx, s)
		c.Metrics.collected.WithLabelValues(string(s.Kind), strconv.FormatBool(err == nil)).Inc()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
