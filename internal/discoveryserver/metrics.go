package discoveryserver

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the server.
type metrics struct {
	requests *prometheus.CounterVec
	refused  prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "discovery_server_requests_total", Help: "Number of requests by the document, none for other paths, and by the status code.",
		}, []string{"document", "code"}),
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "discovery_server_refused_objects", Help: "Number of Secrets and ConfigMaps that are not served, as they do not fit to their Shoot or are invalid.",
		}),
	}
	return m, errors.Join(registry.Register(m.requests), registry.Register(m.refused))
}

func (m *metrics) answered(document string, code int) {
	m.requests.WithLabelValues(document, strconv.Itoa(code)).Inc()
}
