package snapshotter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

// Metrics are the metrics of snapshots, under the names that dashboards and alerts use.
type Metrics struct {
	revision, timestamp, required *prometheus.GaugeVec
	duration                      *prometheus.HistogramVec
	collected                     *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		revision: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "etcdbr_snapshot_latest_revision", Help: "Revision that the latest snapshot reaches.",
		}, []string{"kind"}),
		timestamp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "etcdbr_snapshot_latest_timestamp", Help: "When the latest snapshot was made, in seconds since 1970.",
		}, []string{"kind"}),
		required: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "etcdbr_snapshot_required", Help: "Whether there are changes that no snapshot of the kind has, 1 or 0.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcdbr_snapshot_duration_seconds", Help: "How long making snapshots takes.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"kind", "succeeded"}),
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcdbr_snapshot_gc_total", Help: "Number of snapshots that were deleted as garbage.",
		}, []string{"kind", "succeeded"}),
	}
	registry.MustRegister(m.revision, m.timestamp, m.required, m.duration, m.collected)
	return m
}

func (m *Metrics) latest(s snapshot.Snapshot) {
	m.revision.WithLabelValues(string(s.Kind)).Set(float64(s.LastRevision))
	m.timestamp.WithLabelValues(string(s.Kind)).Set(float64(s.CreatedOn.Unix()))
	m.required.WithLabelValues(string(s.Kind)).Set(0)
}

// changed records that etcd has changes that no snapshot has.
func (m *Metrics) changed() {
	for _, kind := range []snapshot.Kind{snapshot.Full, snapshot.Delta} {
		m.required.WithLabelValues(string(kind)).Set(1)
	}
}

func (m *Metrics) made(kind snapshot.Kind, took time.Duration, err error) {
	m.duration.WithLabelValues(string(kind), strconv.FormatBool(err == nil)).Observe(took.Seconds())
}
