// Package rejections counts what webhooks refuse.
package rejections

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Reasons for which requests are refused.
const (
	SizeExceeded       = "Size Exceeded"
	CountExceeded      = "Count Exceeded"
	RejectedKubeconfig = "Rejected Kubeconfig"
)

// Counter counts refused requests.
type Counter struct {
	total *prometheus.CounterVec
}

// New returns a counter and registers it.
func New(registry prometheus.Registerer) (*Counter, error) {
	c := &Counter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gardener_admission_controller_rejected_resources_total",
		Help: "Number of resources that webhooks have refused.",
	}, []string{"operation", "kind", "namespace", "reason"})}
	return c, registry.Register(c.total)
}

// Count counts a request that is refused for a reason.
func (c *Counter) Count(request admission.Request, reason string) {
	c.total.WithLabelValues(strings.ToLower(string(request.Operation)), request.Kind.Kind, request.Namespace, reason).Inc()
}
