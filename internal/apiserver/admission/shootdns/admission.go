// Package shootdns gives Shoots a domain and makes one of their DNS providers the primary one.
package shootdns

import (
	"context"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/project"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// Name is the name of the plugin.
const Name = "ShootDNS"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Plugin sets and checks spec.dns of Shoots. Reads Projects and Seeds, and Secrets of default domains in the kube-apiserver.
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
	if dnsname.Unmanaged(shoot.Spec.DNS) {
		setPrimary(shoot.Spec.DNS)
		return nil
	}
	domain := dnsname.Of(shoot.Spec.DNS)
	if domain != "" && !needsPrimary(shoot.Spec.DNS) {
		return nil
	}
	if domain != "" {
		in, err := p.readDomains(ctx, seed)
		if err == nil && dnsname.Closest(domain, in.defaults) == "" {
			setPrimary(shoot.Spec.DNS)
		}
		return err
	}
	offered, err := p.offered(ctx, seed)
	if err != nil || len(offered) == 0 {
		return err
	}
	proj, err := project.ForNamespace(ctx, p.GardenCache, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	assign(shoot, proj.Name, offered[0])
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, old := changed(a)
	if shoot == nil {
		return nil
	}
	domain := dnsname.Of(shoot.Spec.DNS)
	// A seed brings domains of its own, so what was fine for another one, or for none, may not be so.
	taken := domain != dnsname.Of(old.Spec.DNS) || !apiequality.Semantic.DeepEqual(shoot.Spec.SeedName, old.Spec.SeedName) ||
		// Records of a shoot that is no longer unmanaged are written with the credentials of the landscape.
		dnsname.Unmanaged(shoot.Spec.DNS) != dnsname.Unmanaged(old.Spec.DNS)
	if domain == "" || !taken && apiequality.Semantic.DeepEqual(shoot.Spec.DNS, old.Spec.DNS) {
		return nil
	}
	var seed *corev1beta1.Seed
	if shoot.Spec.SeedName != nil {
		var err error
		if seed, err = p.readSeed(ctx, *shoot.Spec.SeedName); err != nil {
			return err
		}
	}
	in, err := p.readDomains(ctx, seed)
	if err != nil {
		return err
	}
	proj, err := project.ForNamespace(ctx, p.GardenCache, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	var errs field.ErrorList
	if taken {
		errs = check(shoot.Spec.DNS, shoot.Spec.SeedName, proj.Name, in)
	} else {
		errs = checkProviders(shoot.Spec.DNS, dnsname.Closest(domain, in.defaults))
	}
	if len(errs) > 0 {
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
