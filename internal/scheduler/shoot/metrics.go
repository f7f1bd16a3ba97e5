package shoot

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of the scheduler.
type metrics struct {
	decisionDuration                    prometheus.Histogram
	bound, failed, conflicted, rejected prometheus.Counter
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
		Help: "How often the scheduling of a shoot was attempted, by result.",
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
		rejected:         attempts.WithLabelValues("refused"),
	}, nil
}
