package clusterautoscaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
)

// metrics have the names of the original.
type metrics struct {
	registry                                       *prometheus.Registry
	safe, groups, unneeded, unremovable, cooldown  prometheus.Gauge
	nodes, pending, last, minimum, maximum, target *prometheus.GaugeVec
	maxNodes                                       prometheus.Gauge
	duration                                       *prometheus.HistogramVec
	errors, ups, failedDowns                       prometheus.Counter
	downs, failedUps, evictions                    *prometheus.CounterVec
}

func newMetrics() *metrics {
	const prefix = "cluster_autoscaler_"
	m := &metrics{registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	gauges := func(name, help, label string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{label})
		m.registry.MustRegister(g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, []string{label})
		m.registry.MustRegister(c)
		return c
	}
	m.safe = gauge("cluster_safe_to_autoscale", "1 if enough nodes are ready for nodes to be added and removed.")
	m.groups = gauge("node_groups_count", "Number of groups.")
	m.maxNodes = gauge("max_nodes_count", "How many nodes there may be, 0 if there is no limit.")
	m.unneeded = gauge("unneeded_nodes_count", "Number of nodes that are not needed.")
	m.unremovable = gauge("unremovable_nodes_count", "Number of nodes that are kept.")
	m.cooldown = gauge("scale_down_in_cooldown", "1 while no node is removed because something happened not long ago.")
	m.nodes = gauges("nodes_count", "Number of nodes by state.", "state")
	m.pending = gauges("unschedulable_pods_count", "Number of pods that have no node.", "type")
	m.last = gauges("last_activity", "Unix time of the last activity of a kind, and of the last success of a scan.", "activity")
	m.minimum = gauges("node_group_min_count", "Minimum size of a group.", "node_group")
	m.maximum = gauges("node_group_max_count", "Maximum size of a group.", "node_group")
	m.target = gauges("node_group_target_count", "Requested size of a group.", "node_group")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "function_duration_seconds", Help: "How long parts of a scan took.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 15),
	}, []string{"function"})
	m.registry.MustRegister(m.duration)
	m.errors = counter("errors_total", "Number of scans that failed.")
	m.ups = counter("scaled_up_nodes_total", "Number of nodes that were requested.")
	m.failedDowns = counter("failed_node_drains_total", "Number of nodes that could not be drained.")
	m.downs = counters("scaled_down_nodes_total", "Number of nodes that were removed.", "reason")
	m.failedUps = counters("failed_scale_ups_total", "How often a group failed to grow.", "reason")
	m.evictions = counters("evicted_pods_total", "Number of evictions.", "eviction_result")
	return m
}

func (m *metrics) options(o Options) {
	m.maxNodes.Set(float64(o.maxNodesTotal))
	m.groups.Set(float64(len(o.Nodes)))
}

func (m *metrics) activity(name string, now time.Time) {
	m.last.WithLabelValues(name).Set(float64(now.Unix()))
}

// observe sets what a scan has found.
func (m *metrics) observe(st *state, healthy bool, o Options) {
	m.safe.Set(number(healthy))
	counts := map[string]int{"ready": 0, "unready": 0, "notStarted": 0, "unregistered": 0}
	for _, g := range st.groups {
		counts["ready"] += g.readyNodes
		counts["unready"] += g.unready
		counts["notStarted"] += g.starting
		for _, machine := range g.machines {
			if machine.node == nil && !machine.going {
				counts["unregistered"]++
			}
		}
		if o.perGroupMetrics {
			m.minimum.WithLabelValues(g.Name).Set(float64(g.Min))
			m.maximum.WithLabelValues(g.Name).Set(float64(g.Max))
			m.target.WithLabelValues(g.Name).Set(float64(g.Target))
		}
	}
	for state, count := range counts {
		m.nodes.WithLabelValues(state).Set(float64(count))
	}
}

func (m *metrics) down(result plan.DownPlan, cooldown bool) {
	m.unneeded.Set(float64(len(result.Since)))
	m.unremovable.Set(float64(len(result.Kept)))
	m.cooldown.Set(number(cooldown))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
