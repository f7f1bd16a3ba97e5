package lifecycle

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Metrics times the operations on shoots. The nil value does nothing.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics returns metrics that are registered for the endpoint of the process.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gardenlet_shoot_operation_duration_seconds",
		Help:    "How long operations on shoots took, by operation, result (success, failure), and whether the shoot has workers or is hibernated.",
		Buckets: prometheus.ExponentialBucketsRange(1, 3600, 14),
	}, []string{"operation", "result", "workerless", "hibernated"})}
	return m, registerer.Register(m.duration)
}

func (m *Metrics) observe(operation corev1beta1.LastOperationType, shoot *corev1beta1.Shoot, took time.Duration, err error) {
	if m == nil {
		return
	}
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.duration.WithLabelValues(string(operation), result, strconv.FormatBool(shoot.Workerless()), strconv.FormatBool(shoot.HibernationWanted())).
		Observe(took.Seconds())
}
