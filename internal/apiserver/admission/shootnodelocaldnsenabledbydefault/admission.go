// Package shootnodelocaldnsenabledbydefault enables the DNS cache on each node in new Shoots, unless their spec disables it.
package shootnodelocaldnsenabledbydefault

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Name is the name of the plugin.
const Name = "ShootNodeLocalDNSEnabledByDefault"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create)} }

// Plugin changes new Shoots. Reads nothing.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface. Without workers there are no nodes.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.Workerless() {
		return nil
	}
	if shoot.Spec.SystemComponents == nil {
		shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{}
	}
	if shoot.Spec.SystemComponents.NodeLocalDNS == nil {
		shoot.Spec.SystemComponents.NodeLocalDNS = &corev1beta1.NodeLocalDNS{Enabled: true}
	}
	return nil
}
