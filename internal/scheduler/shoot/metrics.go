package shoot

import "github.com/prometheus/client_golang/prometheus"

// metrics tell how the scheduler is doing.
type metrics struct {
	decisionDuration                   prometheus.Histogram
	bound, failed, conflicted, refused prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	duration := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "gardener_scheduler_shoot_decision_duration_seconds",
		Help: "How long it took to decide about a shoot.",
		// From 10 microseconds to 80 milliseconds.
		Buckets: prometheus.ExponentialBuckets(1e-5, 2, 14),
	})
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gardener_scheduler_shoot_attempts_total",
		Help: "How often it was tried to schedule a shoot, by result.",
	}, []string{"result"})
	for _, collector := range []prometheus.Collector{duration, attempts} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return &metrics{
		decisionDuration: duration,
		bound:            attempts.WithLabelValues("bound"),
		failed:           attempts.WithLabelValues("unschedulable"),
		conflicted:       attempts.WithLabelValues("conflict"),
		refused:          attempts.WithLabelValues("refused"),
	}, nil
}
