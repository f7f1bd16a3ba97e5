package care

import (
	"github.com/prometheus/client_golang/prometheus"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Metrics are those of the Garden. The nil value does nothing.
type Metrics struct {
	condition *prometheus.GaugeVec
}

// NewMetrics returns metrics that are registered for the endpoint of the process.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{condition: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gardener_operator_garden_condition",
		Help: "The conditions of the Garden: 1 is True, 0 is False, -1 is anything else.",
	}, []string{"name", "condition"})}
	return m, registerer.Register(m.condition)
}

// observe sets the conditions of a Garden. There are none if it is gone.
func (m *Metrics) observe(name string, conditions []corev1beta1.Condition) {
	if m == nil {
		return
	}
	m.condition.DeletePartialMatch(prometheus.Labels{"name": name})
	for _, c := range conditions {
		value := -1.0
		switch c.Status {
		case corev1beta1.ConditionTrue:
			value = 1
		case corev1beta1.ConditionFalse:
			value = 0
		case corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown:
		}
		m.condition.WithLabelValues(name, string(c.Type)).Set(value)
	}
}
