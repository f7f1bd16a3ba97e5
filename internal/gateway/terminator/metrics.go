package terminator

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the requests.
type metrics struct {
	open  prometheus.Gauge
	total *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_proxy_open_requests", Help: "Number of requests that are passed on at the moment, watches included.",
		}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_proxy_requests_total",
			Help: "Number of requests that were passed on, with the user of a client certificate (certificate) or without (other), and of those refused, by status.",
		}, []string{"result"}),
	}
}

func (m *metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.open), registry.Register(m.total))
}

// forwarded counts a request with or without a user.
func (m *metrics) forwarded(user bool) {
	result := "other"
	if user {
		result = "certificate"
	}
	m.open.Inc()
	m.total.WithLabelValues(result).Inc()
}

func (m *metrics) done() { m.open.Dec() }

// refused counts a request by the status of the answer, of which there are few.
func (m *metrics) refused(code int) {
	if http.StatusText(code) != "" {
		m.total.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}
