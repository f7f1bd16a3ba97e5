package authorizer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gardener.cloud/gardener/internal/authorizer/graph"
)

// Metrics are those of the graph. The names are those of a time when there were two graphs, and dashboards know them.
type Metrics struct {
	updates, checks *prometheus.HistogramVec
}

// NewMetrics registers the metrics of gardener-admission-controller.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	// From 1.5 us on, as most take less than 10 us. The upper ones are those of dashboards: from 0.1 ms on.
	buckets := prometheus.ExponentialBuckets(0.0001/64, 2, 18)
	const prefix = "gardener_admission_controller_seed_authorizer_"
	m := &Metrics{
		updates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "graph_update_duration_seconds", Buckets: buckets,
			Help: "How long changes of the graph take.",
		}, []string{"kind", "operation"}),
		checks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "graph_path_check_duration_seconds", Buckets: buckets,
			Help: "How long it takes to find out whether an object belongs to a seed or a self-hosted shoot.",
		}, []string{"fromKind", "toKind"}),
	}
	registry.MustRegister(m.updates, m.checks)
	return m
}

// Updated observes a change of the graph.
func (m *Metrics) Updated(kind graph.Kind, operation string, took time.Duration) {
	m.updates.WithLabelValues(kind.String(), operation).Observe(took.Seconds())
}

// Checked observes a question to the graph.
func (m *Metrics) Checked(from, to graph.Kind, took time.Duration) {
	m.checks.WithLabelValues(from.String(), to.String()).Observe(took.Seconds())
}
