// Package managedseedshoot refuses to delete ManagedSeeds whose Seed has Shoots.
package managedseedshoot

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "ManagedSeedShoot"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Delete)} }

// Plugin checks deletions. Reads ManagedSeeds and Shoots.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface. Of all ManagedSeeds at once, none may have Shoots.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != seedmanagementv1alpha1.SchemeGroupVersion.WithResource("managedseeds").GroupResource() ||
		a.GetSubresource() != "" {
		return nil
	}
	names := []string{a.GetName()}
	if a.GetName() == "" {
		all := &seedmanagementv1alpha1.ManagedSeedList{}
		if err := p.GardenCache.List(ctx, all, client.InNamespace(a.GetNamespace())); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("list ManagedSeeds: %w", err))
		}
		names = nil
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
	}
	for _, name := range names {
		for _, path := range []string{"spec.seedName", "status.seedName"} {
			shoots := &corev1beta1.ShootList{}
			if err := p.GardenCache.List(ctx, shoots, client.MatchingFields{path: name}, initializer.Fresh); err != nil {
				return apierrors.NewInternalError(fmt.Errorf("list Shoots on Seed %q: %w", name, err))
			}
			if n := len(shoots.Items); n > 0 {
				return admission.NewForbidden(a, fmt.Errorf("%d Shoots are on the Seed of ManagedSeed %q, such as %q",
					n, name, client.ObjectKeyFromObject(&shoots.Items[0])))
			}
		}
	}
	return nil
}
