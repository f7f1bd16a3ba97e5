// Package snapshotter takes snapshots of an etcd while its member leads.
package snapshotter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

const (
	// retryPeriod is how long to wait after a failure. etcd keeps the changes meanwhile.
	retryPeriod = 10 * time.Second
	// minDeltaPeriod is the shortest period of delta snapshots. A shorter one disables them.
	minDeltaPeriod = time.Second
)

// Config configures when and how snapshots are taken.
type Config struct {
	FullSchedule     cron.Schedule
	FullTimeout      time.Duration
	DeltaPeriod      time.Duration
	DeltaMemoryLimit int64
	RequestTimeout   time.Duration
	Compression      snapshot.Compression
}

// Snapshotter takes snapshots. Its loop reads changes from etcd, and writes them to the store.
type Snapshotter struct {
	config Config
	// etcd is a client of one member, so that a full snapshot reaches at least the revision that was read before.
	etcd     *clientv3.Client
	store    *snapstore.Store
	clock    clock.Clock
	metrics  *Metrics
	report   func(ctx context.Context, kind snapshot.Kind, revision int64)
	requests chan *request
	// behind is whether etcd was at an earlier revision than the store.
	behind bool
}

// New returns a snapshotter. It calls report each time that all changes up to a revision are in the store, even if nothing changed.
func New(config Config, etcd *clientv3.Client, store *snapstore.Store, c clock.Clock, metrics *Metrics, report func(ctx context.Context, kind snapshot.Kind, revision int64)) *Snapshotter {
	return &Snapshotter{config: config, etcd: etcd, store: store, clock: c, metrics: metrics, report: report, requests: make(chan *request)}
}

// request is a request for a snapshot outside of the schedule.
type request struct {
	kind   snapshot.Kind
	final  bool
	answer chan answer // buffered
	// upTo is the revision that a delta must reach.
	upTo int64
}

func newRequest(kind snapshot.Kind, upTo int64) *request {
	return &request{kind: kind, upTo: upTo, answer: make(chan answer, 1)}
}

type answer struct {
	snapshot *snapshot.Snapshot
	err      error
}

// errInterrupted is the answer to pending requests when a run ends.
var errInterrupted = errors.New("interrupted; request it again")

// Full requests a full snapshot and waits for it. The snapshotter must be running.
func (s *Snapshotter) Full(ctx context.Context, final bool) (*snapshot.Snapshot, error) {
	r := newRequest(snapshot.Full, 0)
	r.final = final
	return s.request(ctx, r)
}

// Delta requests a delta snapshot with all changes up to now, and waits for it. It returns nil if there were none.
func (s *Snapshotter) Delta(ctx context.Context) (*snapshot.Snapshot, error) {
	if s.config.DeltaPeriod < minDeltaPeriod {
		return nil, errors.New("delta snapshots are disabled")
	}
	upTo, err := s.revision(ctx)
	if err != nil {
		return nil, err
	}
	return s.request(ctx, newRequest(snapshot.Delta, upTo))
}

func (s *Snapshotter) request(ctx context.Context, r *request) (*snapshot.Snapshot, error) {
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-r.answer:
		return a.snapshot, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run takes snapshots until the context ends. After a failure it starts again from the snapshots in the store.
func (s *Snapshotter) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	for {
		err := s.run(ctx)
		if ctx.Err() != nil {
			return
		}
		log.Error(err, "Cannot take snapshots, retrying", "after", retryPeriod)
		select {
		case <-s.clock.After(retryPeriod):
		case <-ctx.Done():
			return
		}
	}
}

// session is the state of one run.
type session struct {
	*Snapshotter
	// changes are those that are in no delta yet, in the format of a delta. The first is of revision first.
	changes bytes.Buffer
	writer  *snapshot.DeltaWriter
	first   int64
	// seen is the revision up to which all changes were read.
	seen int64
	// lastFull is when the last full snapshot was taken; zero if there is none.
	lastFull time.Time
	// full receives the result of the full snapshot that is being taken; nil if none is.
	full chan answer
	// waitingForFull are the requests for the full snapshot that is being taken, waitingForDelta those for changes that were not seen yet.
	waitingForFull, waitingForDelta []*request
}

func (s *Snapshotter) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snapshots, err := s.store.List(ctx)
	if err != nil {
		return err
	}
	r := &session{Snapshotter: s}
	if chains := snapshot.Chains(snapshots); len(chains) > 0 {
		r.lastFull, r.seen = chains[0].Full.CreatedOn, chains[0].LastRevision()
		s.metrics.latest(chains[0].Full)
	}
	defer r.abandon()
	if len(snapshots) > 0 {
		if err := r.compare(ctx, snapshots[len(snapshots)-1].LastRevision); err != nil {
			return err
		}
	}
	if r.seen == 0 {
		// Deltas need a full snapshot to start from.
		if err := r.takeFull(ctx, false); err != nil {
			return err
		}
	}
	for {
		err := r.follow(ctx)
		var compacted *compactedError
		switch {
		case errors.As(err, &compacted):
			// Changes were lost, or the revision jumped after a restore: deltas need another full snapshot to start from.
			logr.FromContextOrDiscard(ctx).Info("Changes since the last snapshot are compacted, taking a full snapshot", "seen", r.seen, "compacted", compacted.revision)
			if err := r.takeFull(ctx, false); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// compare fails while etcd is at an earlier revision than the store, as with the volumes of several members that were all replaced by older copies. Changes
// that get revisions a second time would be in no delta, and the next deltas would be added to data that etcd has never had. Once it is past them, another full
// snapshot is the start.
func (r *session) compare(ctx context.Context, stored int64) error {
	revision, err := r.revision(ctx)
	switch {
	case err != nil:
		return err
	case revision < stored:
		r.behind = true
		r.metrics.changed()
		return fmt.Errorf("etcd is at revision %d, and the store has snapshots up to revision %d: etcd runs with older data than its backup, and nothing is backed up; "+
			"restore the backup, or remove the snapshots after revision %d from the store to keep the data of etcd", revision, stored, revision)
	case !r.behind:
		return nil
	}
	if err := r.takeFull(ctx, false); err != nil {
		return err
	}
	r.behind = false
	return nil
}

type compactedError struct{ revision int64 }

func (c *compactedError) Error() string {
	return fmt.Sprintf("compacted up to revision %d", c.revision)
}

// takeFull takes a full snapshot, after which deltas start again.
func (r *session) takeFull(ctx context.Context, final bool) error {
	made, err := r.writeFull(ctx, final)
	if err != nil {
		return err
	}
	r.changes.Reset()
	r.writer, r.seen, r.lastFull = nil, made.LastRevision, made.CreatedOn
	return nil
}

// follow reads changes and takes snapshots by the schedule.
func (r *session) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		changes    clientv3.WatchChan
		deltaTimer clock.Timer
		deltaC     <-chan time.Time
	)
	if r.config.DeltaPeriod >= minDeltaPeriod {
		// Without this, a member without a leader would send nothing, not even an error.
		changes = r.etcd.Watch(clientv3.WithRequireLeader(ctx), "", clientv3.WithPrefix(), clientv3.WithRev(r.seen+1))
		deltaTimer = r.clock.NewTimer(r.config.DeltaPeriod)
		defer deltaTimer.Stop()
		deltaC = deltaTimer.C()
	}
	nextFull := r.clock.NewTimer(r.untilFull())
	defer nextFull.Stop()
	if deltaC != nil {
		// Changes from before this run do not wait for the period, nor does the report that backups are up to date.
		upTo, err := r.revision(ctx)
		if err != nil {
			return err
		}
		if err := r.accept(ctx, newRequest(snapshot.Delta, upTo)); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case response, ok := <-changes:
			if !ok {
				return errors.Join(errors.New("watch ended"), ctx.Err())
			}
			if err := r.read(response); err != nil {
				return err
			}
			if int64(r.changes.Len()) >= r.config.DeltaMemoryLimit {
				if _, err := r.flush(ctx); err != nil {
					return err
				}
			}
			if err := r.answerDeltas(ctx); err != nil {
				return err
			}
		case <-deltaC:
			if _, err := r.flush(ctx); err != nil {
				return err
			}
			deltaTimer.Reset(r.config.DeltaPeriod)
		case <-nextFull.C():
			r.startFull(ctx, false)
		case made := <-r.full:
			r.full = nil
			r.answer(&r.waitingForFull, made)
			if made.err != nil {
				return made.err
			}
			r.lastFull = made.snapshot.CreatedOn
			nextFull.Reset(r.untilFull())
		case request := <-r.requests:
			if err := r.accept(ctx, request); err != nil {
				return err
			}
		}
	}
}

func (r *session) untilFull() time.Duration {
	if r.lastFull.IsZero() {
		return 0
	}
	last, now := r.lastFull, r.clock.Now()
	if last.After(now) { // by the clock of a node that was wrong
		last = now
	}
	return max(0, r.config.FullSchedule.Next(last.UTC()).Sub(now))
}

// read handles a response of the watch.
func (r *session) read(response clientv3.WatchResponse) error {
	if err := response.Err(); err != nil {
		if errors.Is(err, rpctypes.ErrCompacted) || response.CompactRevision != 0 {
			return &compactedError{response.CompactRevision}
		}
		return fmt.Errorf("watch: %w", err)
	}
	if response.IsProgressNotify() {
		r.seen = max(r.seen, response.Header.Revision)
		return nil
	}
	if len(response.Events) > 0 {
		r.metrics.changed()
	}
	for _, event := range response.Events {
		if r.writer == nil {
			r.writer, r.first = snapshot.NewDeltaWriter(&r.changes), event.Kv.ModRevision
		}
		if err := r.writer.Write((*mvccpb.Event)(event)); err != nil {
			return err
		}
		r.seen = event.Kv.ModRevision
	}
	return nil
}

// flush writes a delta snapshot with the changes that are in none yet, if there are any.
func (r *session) flush(ctx context.Context) (made *snapshot.Snapshot, err error) {
	if r.writer == nil {
		r.report(ctx, snapshot.Delta, r.seen)
		return nil, nil
	}
	started := r.clock.Now()
	defer func() { r.metrics.made(snapshot.Delta, r.clock.Since(started), err) }()
	made = &snapshot.Snapshot{
		Kind: snapshot.Delta, StartRevision: r.first, LastRevision: r.seen, CreatedOn: started.UTC().Truncate(time.Second), Compression: r.config.Compression,
	}
	if err := r.writer.Close(); err != nil {
		return nil, err
	}
	if _, err := r.store.Write(ctx, *made, func(w io.Writer) error {
		_, err := w.Write(r.changes.Bytes())
		return err
	}); err != nil {
		return nil, err
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Took delta snapshot", "name", made.Name(), "bytes", r.changes.Len())
	r.changes.Reset()
	r.writer = nil
	r.metrics.latest(*made)
	r.report(ctx, snapshot.Delta, made.LastRevision)
	return made, nil
}

// startFull takes a full snapshot in parallel to the loop: it can take minutes, and changes have to be read meanwhile.
func (r *session) startFull(ctx context.Context, final bool) {
	if r.full != nil {
		return
	}
	done := make(chan answer, 1)
	r.full = done
	go func() {
		made, err := r.writeFull(ctx, final)
		done <- answer{made, err}
	}()
}

// writeFull stores a copy of the database.
func (s *Snapshotter) writeFull(ctx context.Context, final bool) (made *snapshot.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.FullTimeout)
	defer cancel()
	started := s.clock.Now()
	defer func() { s.metrics.made(snapshot.Full, s.clock.Since(started), err) }()
	revision, err := s.revision(ctx)
	if err != nil {
		return nil, err
	}
	made = &snapshot.Snapshot{
		Kind: snapshot.Full, LastRevision: revision, CreatedOn: started.UTC().Truncate(time.Second), Compression: s.config.Compression, Final: final,
	}
	logr.FromContextOrDiscard(ctx).Info("Taking full snapshot", "name", made.Name())
	content, err := s.etcd.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	defer content.Close()
	if _, err := s.store.Write(ctx, *made, func(w io.Writer) error {
		_, err := io.Copy(w, snapshot.Verified(content))
		return err
	}); err != nil {
		return nil, err
	}
	s.metrics.latest(*made)
	s.report(ctx, snapshot.Full, revision)
	return made, nil
}

// revision reads the revision of etcd, confirmed by a quorum.
func (s *Snapshotter) revision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	response, err := s.etcd.Get(ctx, "revision", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return response.Header.Revision, nil
}

// accept handles a request.
func (r *session) accept(ctx context.Context, request *request) error {
	if request.kind == snapshot.Full {
		if r.full != nil {
			// It may not have changes from shortly before the request.
			request.answer <- answer{err: errors.New("a full snapshot is being taken; request another one when it is done")}
			return nil
		}
		r.waitingForFull = append(r.waitingForFull, request)
		r.startFull(ctx, request.final)
		return nil
	}
	r.waitingForDelta = append(r.waitingForDelta, request)
	if r.seen < request.upTo {
		if err := r.etcd.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil {
			return fmt.Errorf("request progress of the watch: %w", err)
		}
	}
	return r.answerDeltas(ctx)
}

// answerDeltas answers requests for deltas whose changes were all seen.
func (r *session) answerDeltas(ctx context.Context) error {
	upTo := int64(math.MaxInt64)
	for _, request := range r.waitingForDelta {
		upTo = min(upTo, request.upTo)
	}
	if len(r.waitingForDelta) == 0 || r.seen < upTo {
		return nil
	}
	made, err := r.flush(ctx)
	if err != nil {
		return err
	}
	var left []*request
	for _, request := range r.waitingForDelta {
		if request.upTo > r.seen {
			left = append(left, request)
			continue
		}
		request.answer <- answer{snapshot: made}
	}
	r.waitingForDelta = left
	return nil
}

func (r *session) answer(requests *[]*request, a answer) {
	for _, request := range *requests {
		request.answer <- a
	}
	*requests = nil
}

// abandon answers the pending requests when a run ends.
func (r *session) abandon() {
	r.answer(&r.waitingForFull, answer{err: errInterrupted})
	r.answer(&r.waitingForDelta, answer{err: errInterrupted})
}
