package snapstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

// finalPeriod is how often the source is listed for its final snapshot: object stores have no watch.
const finalPeriod = 5 * time.Second

// CopyOptions configure what is copied.
type CopyOptions struct {
	// MaxAge is the age up to which full snapshots are copied. Zero means that all are.
	MaxAge time.Duration
	// MaxFull is the number of full snapshots that are copied, the latest first. Zero means that all are.
	MaxFull int
	// WaitForFinal waits until the source has a final snapshot, but no longer than WaitTimeout if that is set.
	WaitForFinal bool
	WaitTimeout  time.Duration
}

// Copy copies snapshots that the target does not have, the oldest first, and returns the one that a restore ends with. It is an error if the source has no
// full snapshot when the wait is over: an etcd takes one before it serves, so the store may be lost, and etcd would start without data.
func Copy(ctx context.Context, from, to *Store, options CopyOptions, c clock.WithTicker) (latest snapshot.Snapshot, err error) {
	snapshots, err := awaitFinal(ctx, from, options, c)
	if err != nil {
		return latest, err
	}
	chains := snapshot.Chains(snapshots)
	if len(chains) == 0 {
		return latest, errors.New("the source has no full snapshot, so that there is nothing to restore")
	}
	existing, err := to.List(ctx)
	if err != nil {
		return latest, err
	}
	for _, s := range selectCopied(snapshots, options, c.Now()) {
		if slices.Contains(existing, s) {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("Copying snapshot", "name", s.Name())
		if err := to.CopyFrom(ctx, from, s); err != nil {
			return latest, err
		}
	}
	return chains[0].Latest(), nil
}

func awaitFinal(ctx context.Context, from *Store, options CopyOptions, c clock.WithTicker) ([]snapshot.Snapshot, error) {
	ticker := c.NewTicker(finalPeriod)
	defer ticker.Stop()
	started := c.Now()
	for {
		snapshots, err := from.List(ctx)
		if err != nil {
			return nil, err
		}
		timedOut := options.WaitTimeout > 0 && c.Since(started) >= options.WaitTimeout
		if chains := snapshot.Chains(snapshots); !options.WaitForFinal || timedOut || len(chains) > 0 && chains[0].Full.Final {
			return snapshots, nil
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// selectCopied returns the full snapshots that the options select, and the deltas that start from them, sorted by revision.
func selectCopied(snapshots []snapshot.Snapshot, options CopyOptions, now time.Time) []snapshot.Snapshot {
	var selected []snapshot.Snapshot
	for i, chain := range snapshot.Chains(snapshots) {
		if options.MaxFull > 0 && i >= options.MaxFull || options.MaxAge > 0 && now.Sub(chain.Full.CreatedOn) > options.MaxAge {
			continue
		}
		for _, s := range append([]snapshot.Snapshot{chain.Full}, chain.Deltas...) {
			if !slices.Contains(selected, s) {
				selected = append(selected, s)
			}
		}
	}
	snapshot.Sort(selected)
	return selected
}
