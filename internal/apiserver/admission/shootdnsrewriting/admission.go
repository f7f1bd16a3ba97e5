// Package shootdnsrewriting gives new Shoots the domain suffixes that CoreDNS resolves without the search path, as configured by the operator.
package shootdnsrewriting

import (
	"context"
	"io"
	"slices"

	"k8s.io/apiserver/pkg/admission"

	"gardener.cloud/gardener/api/config/admission/shootdnsrewriting/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the plugin.
const Name = "ShootDNSRewriting"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(file io.Reader) (admission.Interface, error) {
		configuration, err := configfile.Kind[v1alpha1.Configuration]{
			AddToScheme: v1alpha1.AddToScheme, Validate: config.ValidateShootDNSRewriting,
		}.From(file)
		if err != nil {
			return nil, err
		}
		return New(configuration.CommonSuffixes), nil
	})
}

// New returns the plugin.
func New(suffixes []string) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create), suffixes: suffixes}
}

// Plugin changes new Shoots. Reads nothing.
type Plugin struct {
	*admission.Handler
	suffixes []string
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface. Without workers there is no CoreDNS.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.Workerless() || len(p.suffixes) == 0 {
		return nil
	}
	spec := &shoot.Spec
	if spec.SystemComponents == nil {
		spec.SystemComponents = &corev1beta1.SystemComponents{}
	}
	if spec.SystemComponents.CoreDNS == nil {
		spec.SystemComponents.CoreDNS = &corev1beta1.CoreDNS{}
	}
	if spec.SystemComponents.CoreDNS.Rewriting == nil {
		spec.SystemComponents.CoreDNS.Rewriting = &corev1beta1.CoreDNSRewriting{}
	}
	rewriting := spec.SystemComponents.CoreDNS.Rewriting
	for _, suffix := range p.suffixes {
		if !slices.Contains(rewriting.CommonSuffixes, suffix) {
			rewriting.CommonSuffixes = append(rewriting.CommonSuffixes, suffix)
		}
	}
	return nil
}
