// Package seedmutator labels Seeds with their name, as objects that belong to them have this label.
package seedmutator

import (
	"context"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Name is the name of the plugin.
const Name = "SeedMutator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin sets labels. Reads nothing.
type Plugin struct{ *admission.Handler }

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	seed, ok := a.GetObject().(*corev1beta1.Seed)
	if !ok {
		return nil
	}
	for key := range seed.Labels {
		if strings.HasPrefix(key, constants.PrefixSeedName) {
			delete(seed.Labels, key)
		}
	}
	if seed.Name != "" {
		metav1.SetMetaDataLabel(&seed.ObjectMeta, constants.PrefixSeedName+seed.Name, "true")
	}
	return nil
}
