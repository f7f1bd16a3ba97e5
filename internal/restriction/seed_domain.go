package restriction

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// seedDomains refuses new domains of a Seed: names below them are reserved in all projects, so that nobody else could have a Shoot there. A gardenlet
// writes those that an operator has put into its Gardenlet or ManagedSeed, and those that other seeds have. In its first registration all
// are admitted, as references are.
func (v *Values) seedDomains(ctx context.Context, of requester.Seed, r *Request) error {
	seed, ok := r.Object.(*corev1beta1.Seed)
	if !ok {
		return refuse(http.StatusBadRequest, "unexpected object %T for %s", r.Object, r.Resource)
	}
	var known domains
	if old, ok := r.Old.(*corev1beta1.Seed); ok {
		known = domainsOf(&old.Spec)
	}
	if known.lacks(seed) == "" {
		return nil
	}
	if free, err := v.firstRegistration(ctx, of, r); err != nil || free {
		return err
	}
	declared, err := v.declarations(ctx, of.Name)
	if err != nil {
		return err
	}
	for _, obj := range declared {
		switch obj := obj.(type) {
		case *seedmanagementv1alpha1.Gardenlet:
			known.add(domainsIn(obj.Spec.Config))
		case *seedmanagementv1alpha1.ManagedSeed:
			known.add(domainsIn(obj.Spec.Gardenlet.Config))
		}
	}
	return v.domainsOfSeeds(ctx, seed, known)
}

// gardenletDomains refuses domains that no seed has in a Gardenlet that a gardenlet creates, as if an operator had put them there.
func (v *Values) gardenletDomains(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	return v.domainsOfSeeds(ctx, gardenlet, domains{})
}

// managedSeedDomains refuses new domains in a ManagedSeed that a gardenlet updates: its own Seed may have them then.
func (v *Values) managedSeedDomains(ctx context.Context, r *Request, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	old, ok := r.Old.(*seedmanagementv1alpha1.ManagedSeed)
	if !ok {
		return refuse(http.StatusBadRequest, "unexpected stored object %T for %s", r.Old, r.Resource)
	}
	return v.domainsOfSeeds(ctx, managedSeed, domainsIn(old.Spec.Gardenlet.Config))
}

// domainsOfSeeds refuses domains of a Seed, Gardenlet or ManagedSeed that are not known, and that no seed has. The domain for ingress is that of one seed:
// that of another is refused, too.
func (v *Values) domainsOfSeeds(ctx context.Context, obj client.Object, known domains) error {
	if known.lacks(obj) == "" {
		return nil
	}
	seeds := &corev1beta1.SeedList{}
	if err := v.Garden.List(ctx, seeds); err != nil {
		return refuse(http.StatusInternalServerError, "list Seeds: %v", err)
	}
	for i := range seeds.Items {
		of := domainsOf(&seeds.Items[i].Spec)
		if seeds.Items[i].Name != obj.GetName() {
			of.ingress = nil
		}
		known.add(of)
	}
	if domain := known.lacks(obj); domain != "" {
		return forbid("%s %q must not get the domain %q from a gardenlet, as no seed has it there: an operator has to add it to the Gardenlet or ManagedSeed of the seed, "+
			"or else to the Seed itself, before the gardenlet has it in its configuration", kindOf(obj), obj.GetName(), domain)
	}
	return nil
}

// domains are those in which Seeds reserve names, by what they are for. A domain that Shoots have by default must not become one for a seed only.
type domains struct{ defaults, internal, ingress []string }

func (d *domains) add(more domains) {
	d.defaults = append(d.defaults, more.defaults...)
	d.internal = append(d.internal, more.internal...)
	d.ingress = append(d.ingress, more.ingress...)
}

// lacks is a domain of a Seed, Gardenlet or ManagedSeed that is not among those for the same.
func (d *domains) lacks(obj client.Object) string {
	var wanted domains
	switch obj := obj.(type) {
	case *corev1beta1.Seed:
		wanted = domainsOf(&obj.Spec)
	case *seedmanagementv1alpha1.Gardenlet:
		wanted = domainsIn(obj.Spec.Config)
	case *seedmanagementv1alpha1.ManagedSeed:
		wanted = domainsIn(obj.Spec.Gardenlet.Config)
	}
	for _, kind := range []struct{ wanted, known []string }{
		{wanted.defaults, d.defaults}, {wanted.internal, d.internal}, {wanted.ingress, d.ingress},
	} {
		for _, domain := range kind.wanted {
			if !slices.Contains(kind.known, domain) {
				return domain
			}
		}
	}
	return ""
}

// domainsIn are the domains of the Seed in the configuration of a gardenlet.
func domainsIn(config *runtime.RawExtension) domains {
	if spec := graph.SeedTemplate(config); spec != nil {
		return domainsOf(spec)
	}
	return domains{}
}

func domainsOf(spec *corev1beta1.SeedSpec) domains {
	var d domains
	for _, byDefault := range spec.DNS.Defaults {
		d.defaults = append(d.defaults, byDefault.Domain)
	}
	if spec.DNS.Internal != nil {
		d.internal = append(d.internal, spec.DNS.Internal.Domain)
	}
	if spec.Ingress != nil {
		d.ingress = append(d.ingress, spec.Ingress.Domain)
	}
	return d
}
