package nodeproblemdetector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
)

// metrics have the names and labels of the original, which dashboards and alerts use, but for the last one.
type metrics struct {
	registry *prometheus.Registry
	counter  *prometheus.CounterVec
	gauge    *prometheus.GaugeVec
	source   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		counter: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "problem_counter", Help: "Number of times a specific type of problem has occurred.",
		}, []string{"reason"}),
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "problem_gauge", Help: "Whether a specific type of problem is affecting the node or not.",
		}, []string{"type", "reason"}),
		source: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "node_problem_detector_source_readable", Help: "Whether a source of problems can be read: kernel-log or systemd.",
		}, []string{"source"}),
	}
	m.registry.MustRegister(m.counter, m.gauge, m.source,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Series exist from the beginning, or an increase from nothing to one would not be seen.
	for _, r := range rules {
		m.counter.WithLabelValues(r.reason)
		if r.condition != "" {
			m.gauge.WithLabelValues(string(r.condition), r.reason)
		}
	}
	for _, k := range kinds {
		if k.frequent != nil {
			m.counter.WithLabelValues(string(k.condition))
			m.gauge.WithLabelValues(string(k.condition), string(k.condition))
		}
	}
	return m
}

func (m *metrics) count(reason string) { m.counter.WithLabelValues(reason).Inc() }

func (m *metrics) available(s source, is bool) { m.source.WithLabelValues(string(s)).Set(number(is)) }

// condition sets the series of all reasons for which a condition may be True.
func (m *metrics) condition(c corev1.NodeCondition) {
	set := func(reason string) {
		m.gauge.WithLabelValues(string(c.Type), reason).Set(number(c.Status == corev1.ConditionTrue && c.Reason == reason))
	}
	for _, r := range rules {
		if r.condition == c.Type {
			set(r.reason)
		}
	}
	for _, k := range kinds {
		if k.condition == c.Type && k.frequent != nil {
			set(string(k.condition))
		}
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
