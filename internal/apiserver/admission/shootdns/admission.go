// Package shootdns gives Shoots a domain and makes one of their DNS providers the primary one.
package shootdns

import (
	"context"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/project"
)

// Name is the name of the plugin.
const Name = "ShootDNS"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Plugin sets and checks spec.dns of Shoots. Reads Projects and Seeds, and the Secrets of default domains in the kube-apiserver.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// changed returns the shoot of a request that changes it, and what it was before; nil for all other requests.
func changed(a admission.Attributes) (shoot, old *corev1beta1.Shoot) {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" && a.GetSubresource() != "binding" || shoot.DeletionTimestamp != nil {
		return nil, nil
	}
	old, ok = a.GetOldObject().(*corev1beta1.Shoot)
	switch {
	case !ok:
		old = &corev1beta1.Shoot{}
	case apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec):
		return nil, nil
	}
	return shoot, old
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old := changed(a)
	if shoot == nil {
		return nil
	}
	keepPrimary(shoot.Spec.DNS, old.Spec.DNS)
	if shoot.Spec.SeedName == nil {
		return nil // the domain depends on the seed
	}
	seed, err := p.readSeed(ctx, *shoot.Spec.SeedName)
	if err != nil {
		return err
	}
	if unmanaged(shoot.Spec.DNS) {
		setPrimary(shoot.Spec.DNS)
		return nil
	}
	if domain := domainOf(shoot.Spec.DNS); domain != "" {
		if !needsPrimary(shoot.Spec.DNS) {
			return nil
		}
		defaults, err := p.defaultDomains(ctx, seed)
		if err != nil {
			return err
		}
		if defaultFor(domain, defaults) == "" {
			setPrimary(shoot.Spec.DNS)
		}
		return nil
	}
	proj, err := project.ForNamespace(ctx, p.GardenCache, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	defaults, err := p.defaultDomains(ctx, seed)
	if err != nil {
		return err
	}
	if len(defaults) > 0 {
		assign(shoot, proj.Name, defaults[0])
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old := changed(a)
	if shoot == nil || apiequality.Semantic.DeepEqual(shoot.Spec.DNS, old.Spec.DNS) {
		return nil
	}
	domain := domainOf(shoot.Spec.DNS)
	if domain == "" || unmanaged(shoot.Spec.DNS) {
		return nil
	}
	var seed *corev1beta1.Seed
	if shoot.Spec.SeedName != nil {
		var err error
		if seed, err = p.readSeed(ctx, *shoot.Spec.SeedName); err != nil {
			return err
		}
	}
	defaults, err := p.defaultDomains(ctx, seed)
	if err != nil {
		return err
	}
	def := defaultFor(domain, defaults)
	if def == "" {
		return nil
	}
	proj, err := project.ForNamespace(ctx, p.GardenCache, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if errs := checkDefault(shoot.Spec.DNS, domain != domainOf(old.Spec.DNS), proj.Name, def); len(errs) > 0 {
		return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, errs)
	}
	return nil
}

func (p *Plugin) readSeed(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := p.GardenCache.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
		// Not wrapped: its code would become that of the response.
		return nil, fmt.Errorf("read seed %q: %v", name, err) //nolint:errorlint // see above
	}
	return seed, nil
}
