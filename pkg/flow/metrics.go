package flow

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the duration and number of tasks of flows. Nil is valid and does nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers metrics whose names start with the name of a process, such as "gardenlet".
func NewMetrics(process string, registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: process, Subsystem: "flow", Name: "task_duration_seconds",
			Help:    "How long tasks of flows took, by flow, task and result (success, failure).",
			Buckets: prometheus.ExponentialBucketsRange(0.01, 600, 12),
		}, []string{"flow", "task", "result"}),
	}
	return m, registerer.Register(m.duration)
}

func (m *Metrics) observe(flow string, t Timing) {
	if m == nil {
		return
	}
	result := "success"
	if t.Err != nil {
		result = "failure"
	}
	m.duration.WithLabelValues(flow, t.ID, result).Observe(t.Duration().Seconds())
}
