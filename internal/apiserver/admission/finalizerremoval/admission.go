// Package finalizerremoval refuses to remove the finalizer of Gardener while the object is in use or resources of it still exist.
package finalizerremoval

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "FinalizerRemoval"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Update)}
}

// Plugin checks updates of bindings and Shoots. Reads Shoots.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := a.GetObject().(client.Object)
	if !ok {
		return nil
	}
	old, ok := a.GetOldObject().(client.Object)
	if !ok || !slices.Contains(old.GetFinalizers(), constants.FinalizerGardenerName) ||
		slices.Contains(obj.GetFinalizers(), constants.FinalizerGardenerName) {
		return nil
	}
	switch o := obj.(type) {
	case *corev1beta1.SecretBinding:
		return p.unused(ctx, a, o, func(shoot *corev1beta1.Shoot) *string { return shoot.Spec.SecretBindingName })
	case *securityv1alpha1.CredentialsBinding:
		return p.unused(ctx, a, o, func(shoot *corev1beta1.Shoot) *string { return shoot.Spec.CredentialsBindingName })
	case *corev1beta1.Shoot:
		if gone(&o.Status) {
			return nil
		}
		return admission.NewForbidden(a, fmt.Errorf("finalizer %q cannot be removed before the deletion has succeeded", constants.FinalizerGardenerName))
	}
	return nil
}

// unused refuses to remove the finalizer of a binding that Shoots in its namespace refer to.
func (p *Plugin) unused(ctx context.Context, a admission.Attributes, binding client.Object, name func(*corev1beta1.Shoot) *string) error {
	shoots := &corev1beta1.ShootList{}
	if err := p.GardenCache.List(ctx, shoots, client.InNamespace(binding.GetNamespace()), initializer.Fresh); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list Shoots in namespace %q: %w", binding.GetNamespace(), err))
	}
	for i := range shoots.Items {
		if used := name(&shoots.Items[i]); used != nil && *used == binding.GetName() {
			return admission.NewForbidden(a, fmt.Errorf("finalizer %q cannot be removed while Shoot %q uses the binding",
				constants.FinalizerGardenerName, shoots.Items[i].Name))
		}
	}
	return nil
}

// gone reports whether nothing of a Shoot exists: its creation never started, or its deletion has succeeded.
func gone(status *corev1beta1.ShootStatus) bool {
	last := status.LastOperation
	if last == nil {
		return status.TechnicalID == ""
	}
	return last.Type == corev1beta1.LastOperationTypeDelete && last.State == corev1beta1.LastOperationStateSucceeded && last.Progress == 100
}
