package backuprestore

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics that are not about snapshots.
type metrics struct {
	clusterSize     prometheus.Gauge
	defragmentation *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		clusterSize: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "etcdbr_cluster_size", Help: "Number of members of the cluster.",
		}),
		defragmentation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "etcdbr_defragmentation_duration_seconds", Help: "How long defragmenting a member takes.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"succeeded"}),
	}
	registry.MustRegister(m.clusterSize, m.defragmentation)
	return m
}

func (m *metrics) defragmented(took time.Duration, err error) {
	m.defragmentation.WithLabelValues(strconv.FormatBool(err == nil)).Observe(took.Seconds())
}
