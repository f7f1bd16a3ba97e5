package tunnel

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of all processes of the tunnel.
type Metrics struct {
	connections *prometheus.GaugeVec
	streams     *prometheus.CounterVec
	dials       *prometheus.HistogramVec
	bytes       *prometheus.CounterVec
	echoes      *prometheus.HistogramVec
	refused     *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tunnel_connections", Help: "Number of connections by the role of the client.",
		}, []string{"role"}),
		streams: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tunnel_streams_total", Help: "Number of streams by type and result.",
		}, []string{"type", "result"}),
		dials: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tunnel_dial_duration_seconds", Help: "Time until a stream was connected.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"type"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tunnel_carried_bytes_total", Help: "Number of bytes of streams that have ended, by direction as seen from the client of the stream.",
		}, []string{"direction"}),
		echoes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tunnel_echo_duration_seconds", Help: "Round trip of bytes through a stream.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"role"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tunnel_refused_total", Help: "Number of handshakes, connections and streams that were refused or closed because of a limit, by that limit.",
		}, []string{"limit"}),
	}
	return m, errors.Join(registry.Register(m.connections), registry.Register(m.streams), registry.Register(m.dials),
		registry.Register(m.bytes), registry.Register(m.echoes), registry.Register(m.refused))
}

func (m *Metrics) dialed(typ requestType, err error, took time.Duration) {
	result := "ok"
	switch {
	case errors.Is(err, errForbidden):
		result = "forbidden"
	case errors.Is(err, errDisconnected):
		result = "disconnected"
	case errors.Is(err, errBusy):
		result = "busy"
	case err != nil:
		result = "unreachable"
	}
	m.streams.WithLabelValues(string(typ), result).Inc()
	if err == nil {
		m.dials.WithLabelValues(string(typ)).Observe(took.Seconds())
	}
}

// refuse counts what a limit has refused.
func (m *Metrics) refuse(limit string) { m.refused.WithLabelValues(limit).Inc() }

func (m *Metrics) carried(there, back int64) {
	m.bytes.WithLabelValues("sent").Add(float64(there))
	m.bytes.WithLabelValues("received").Add(float64(back))
}

// echo returns a function that observes round trips with clients of a role.
func (m *Metrics) echo(role Role) func(time.Duration) {
	return func(d time.Duration) { m.echoes.WithLabelValues(string(role)).Observe(d.Seconds()) }
}
