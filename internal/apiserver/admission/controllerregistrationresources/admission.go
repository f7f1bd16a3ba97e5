// Package controllerregistrationresources keeps two ControllerRegistrations from being primarily responsible for the same kind
// and type of extension.
package controllerregistrationresources

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ControllerRegistrationResources"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Plugin checks ControllerRegistrations. Reads ControllerRegistrations.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	registration, ok := a.GetObject().(*corev1beta1.ControllerRegistration)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	others := &corev1beta1.ControllerRegistrationList{}
	if err := p.GardenCache.List(ctx, others); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("list ControllerRegistrations: %w", err))
	}
	if err := check(registration, others.Items); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// check returns an error if another registration is already primarily responsible for a resource of this one.
func check(registration *corev1beta1.ControllerRegistration, others []corev1beta1.ControllerRegistration) error {
	type resource struct{ kind, extensionType string }
	taken := map[resource]string{}
	for i := range others {
		if others[i].Name == registration.Name {
			continue
		}
		for _, r := range others[i].Spec.Resources {
			if primary(r) {
				taken[resource{r.Kind, r.Type}] = others[i].Name
			}
		}
	}
	for _, r := range registration.Spec.Resources {
		if owner, ok := taken[resource{r.Kind, r.Type}]; ok && primary(r) {
			return fmt.Errorf("ControllerRegistration %q is already primarily responsible for %s of type %q", owner, r.Kind, r.Type)
		}
	}
	return nil
}

// primary reports whether a registration is primarily responsible for a resource, which is the default.
func primary(r corev1beta1.ControllerResource) bool { return r.Primary == nil || *r.Primary }
