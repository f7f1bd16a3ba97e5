// Package shootvpaenabledbydefault enables vertical pod autoscaling in new Shoots, unless their spec disables it.
package shootvpaenabledbydefault

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Name is the name of the plugin.
const Name = "ShootVPAEnabledByDefault"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// Plugin changes new Shoots. Reads nothing.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface. Without workers there is nothing to autoscale.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if ok && a.GetSubresource() == "" && !shoot.Workerless() && shoot.Spec.Kubernetes.VerticalPodAutoscaler == nil {
		vpa := &corev1beta1.VerticalPodAutoscaler{Enabled: true}
		corev1beta1.DefaultVerticalPodAutoscaler(vpa) // as decoding does: otherwise the next request would be a change
		shoot.Spec.Kubernetes.VerticalPodAutoscaler = vpa
	}
	return nil
}
