package backuprestore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/robfig/cron/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapshotter"
	"gardener.cloud/gardener/internal/backuprestore/startup"
)

const (
	// headersWithin is how long a client may take for the headers of its request.
	headersWithin = 30 * time.Second
	// closedWithin is how long requests may take after the context of the process ended.
	closedWithin = 5 * time.Second
)

// server is a running etcd-backup-restore.
type server struct {
	*environment
	observer *observer
	own      *clientv3.Client
	metrics  *metrics
	// snapshots are the metrics of snapshots.
	snapshots *snapshotter.Metrics
	registry  *prometheus.Registry
	// active takes the snapshots while the member leads, and is nil otherwise.
	active atomic.Pointer[snapshotter.Snapshotter]
}

// Serve backs up and maintains a running etcd until the context ends.
func Serve(ctx context.Context, config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration, member string) error {
	e, err := newEnvironment(ctx, config, member)
	if err != nil {
		return err
	}
	defer e.close()
	s := &server{environment: e, registry: prometheus.NewRegistry()}
	s.metrics, s.snapshots = newMetrics(s.registry), snapshotter.NewMetrics(s.registry)
	if s.own, err = e.dial(startup.MemberURL(config.Cluster.ClientURL, member)); err != nil {
		return err
	}
	defer s.own.Close() //nolint:errcheck // nothing is pending
	cluster, err := e.dial(config.Cluster.ClientEndpoint)
	if err != nil {
		return err
	}
	defer cluster.Close() //nolint:errcheck // nothing is pending
	s.observer = &observer{
		startup: e.startup(), leases: e.leases, own: s.own, cluster: cluster, clock: clock.RealClock{}, metrics: s.metrics, lead: s.lead,
	}
	httpServer, listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	running.Go(func() { s.observer.Run(ctx) })
	running.Go(func() {
		if err := httpServer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serve HTTP: %w", err))
		}
	})
	<-ctx.Done()
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), closedWithin)
	defer done()
	err = httpServer.Shutdown(stop)
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

func (s *server) listen(ctx context.Context) (*http.Server, net.Listener, error) {
	tlsConfig, err := serverTLS(s.config.Server.TLS)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of the server: %w", err)
	}
	peers, err := clientTLS(s.config.Server.ClientTLS)
	if err != nil {
		return nil, nil, fmt.Errorf("credentials for other members: %w", err)
	}
	address := net.JoinHostPort(s.config.Server.BindAddress, strconv.Itoa(int(s.config.Server.Port)))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	transport.TLSClientConfig = peers
	httpServer := &http.Server{
		Handler: s.handler(transport), TLSConfig: tlsConfig, ReadHeaderTimeout: headersWithin,
		// Requests get the values of the process's context, but end with Shutdown.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if tlsConfig != nil {
		return httpServer, tls.NewListener(listener, tlsConfig), nil
	}
	return httpServer, listener, nil
}

// lead runs the tasks of the leader's sidecar: snapshots, garbage collection, defragmentation.
func (s *server) lead(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if s.store != nil {
		config, err := snapshotConfig(s.config)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot take snapshots") // cannot happen: the configuration was validated
			return
		}
		maker := snapshotter.New(config, s.own, s.store, clock.RealClock{}, s.snapshots, s.reportSnapshot)
		s.active.Store(maker)
		collector := &snapshotter.Collector{
			Store: s.store, Clock: clock.RealClock{}, Metrics: s.snapshots, Period: s.config.GarbageCollection.Period.Duration,
			Retention: snapshot.Retention{
				Policy: snapshot.Policy(s.config.GarbageCollection.Policy), MaxFull: int(s.config.GarbageCollection.MaxFull),
				Deltas: s.config.GarbageCollection.DeltaRetention.Duration,
			},
		}
		running.Go(func() {
			defer s.active.Store(nil)
			maker.Run(ctx)
		})
		running.Go(func() { collector.Run(ctx) })
	}
	if defragmentation := s.config.Defragmentation; defragmentation != nil {
		schedule, err := cron.ParseStandard(defragmentation.Schedule)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot defragment") // cannot happen: the configuration was validated
			return
		}
		d := &defragmenter{
			own: s.own, schedule: schedule, timeout: defragmentation.Timeout.Duration, period: s.config.LeaderElection.Period.Duration,
			clock: clock.RealClock{}, metrics: s.metrics,
		}
		running.Go(func() { d.Run(ctx) })
	}
}

// reportSnapshot writes the revision that snapshots of a kind reach to their Lease, for etcd-druid.
func (s *server) reportSnapshot(ctx context.Context, kind snapshot.Kind, revision int64) {
	if s.leases == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Etcd.RequestTimeout.Duration)
	defer cancel()
	if err := s.leases.RenewSnapshot(ctx, kind, revision); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Cannot renew the Lease of snapshots", "kind", kind)
	}
}

var compressions = map[string]snapshot.Compression{
	"": snapshot.None, "gzip": snapshot.Gzip, "lzw": snapshot.LZW, "zlib": snapshot.Zlib, "zstd": snapshot.Zstd,
}

func snapshotConfig(config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) (snapshotter.Config, error) {
	s := config.Snapshots
	schedule, err := cron.ParseStandard(s.FullSchedule)
	if err != nil {
		return snapshotter.Config{}, err
	}
	return snapshotter.Config{
		FullSchedule: schedule, FullTimeout: s.FullTimeout.Duration, DeltaPeriod: s.DeltaPeriod.Duration, DeltaMemoryLimit: s.DeltaMemoryLimit,
		RequestTimeout: config.Etcd.RequestTimeout.Duration, Compression: compressions[strings.ToLower(s.Compression)],
	}, nil
}
