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
	var known []string
	if old, ok := r.Old.(*corev1beta1.Seed); ok {
		known = domainsOf(&old.Spec)
	}
	if unknown(seed, known) == "" {
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
			known = append(known, domainsIn(obj.Spec.Config)...)
		case *seedmanagementv1alpha1.ManagedSeed:
			known = append(known, domainsIn(obj.Spec.Gardenlet.Config)...)
		}
	}
	return v.domainsOfSeeds(ctx, seed, known)
}

// gardenletDomains refuses domains that no seed has in a Gardenlet that a gardenlet creates, as if an operator had put them there.
func (v *Values) gardenletDomains(ctx context.Context, gardenlet *seedmanagementv1alpha1.Gardenlet) error {
	return v.domainsOfSeeds(ctx, gardenlet, nil)
}

// domainsOfSeeds refuses domains of a Seed or Gardenlet that are not known, and that no seed has.
func (v *Values) domainsOfSeeds(ctx context.Context, obj client.Object, known []string) error {
	if unknown(obj, known) == "" {
		return nil
	}
	seeds := &corev1beta1.SeedList{}
	if err := v.Garden.List(ctx, seeds); err != nil {
		return refuse(http.StatusInternalServerError, "list Seeds: %v", err)
	}
	for i := range seeds.Items {
		known = append(known, domainsOf(&seeds.Items[i].Spec)...)
	}
	if domain := unknown(obj, known); domain != "" {
		return forbid("%s %q must not get the domain %q from a gardenlet, as no seed has it: an operator has to add it to the Gardenlet or ManagedSeed of the seed, "+
			"or else to the Seed itself, before the gardenlet has it in its configuration", kindOf(obj), obj.GetName(), domain)
	}
	return nil
}

// unknown is a domain of a Seed or Gardenlet that is not known.
func unknown(obj client.Object, known []string) string {
	var domains []string
	switch obj := obj.(type) {
	case *corev1beta1.Seed:
		domains = domainsOf(&obj.Spec)
	case *seedmanagementv1alpha1.Gardenlet:
		domains = domainsIn(obj.Spec.Config)
	}
	for _, domain := range domains {
		if !slices.Contains(known, domain) {
			return domain
		}
	}
	return ""
}

// domainsIn are the domains of the Seed in the configuration of a gardenlet.
func domainsIn(config *runtime.RawExtension) []string {
	if spec := graph.SeedTemplate(config); spec != nil {
		return domainsOf(spec)
	}
	return nil
}

// domainsOf are the domains in which a Seed reserves names.
func domainsOf(spec *corev1beta1.SeedSpec) []string {
	var domains []string
	for _, d := range spec.DNS.Defaults {
		domains = append(domains, d.Domain)
	}
	if spec.DNS.Internal != nil {
		domains = append(domains, spec.DNS.Internal.Domain)
	}
	if spec.Ingress != nil {
		domains = append(domains, spec.Ingress.Domain)
	}
	return domains
}
