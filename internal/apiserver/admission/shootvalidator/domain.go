package shootvalidator

import (
	"context"
	"strings"

	"golang.org/x/net/publicsuffix"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// domain checks that the domain of the shoot is its own. Other shoots are read only when it gets a domain, which is immutable afterwards: those
// of its project, and those with one of the few domains that it may conflict with, so that it does not matter how many shoots there are.
func (p *Plugin) domain(ctx context.Context, in *input) field.ErrorList {
	own := dnsname.Of(in.shoot.Spec.DNS)
	if own == "" || own == dnsname.Of(in.old.Spec.DNS) || in.deleting() {
		return nil
	}
	path := field.NewPath("spec", "dns", "domain")
	if suffix, _ := publicsuffix.PublicSuffix(own); suffix == own {
		return field.ErrorList{field.Invalid(path, own, "domains are registered below it, so it is none of a single owner")}
	}
	selections := []client.ListOption{client.InNamespace(in.shoot.Namespace)}
	for _, other := range conflicting(own) {
		selections = append(selections, client.MatchingFields{"spec.dns.domain": other})
	}
	for _, selection := range selections {
		shoots := &corev1beta1.ShootList{}
		if err := p.GardenCache.List(ctx, shoots, selection); err != nil {
			return field.ErrorList{field.InternalError(path, err)}
		}
		for i := range shoots.Items {
			other := &shoots.Items[i]
			if other.Name == in.shoot.Name && other.Namespace == in.shoot.Namespace {
				continue
			}
			if err := conflict(own, dnsname.Of(other.Spec.DNS), other.Namespace == in.shoot.Namespace, path); err != nil {
				return field.ErrorList{err}
			}
		}
	}
	return nil
}

// conflicting returns the domains of shoots of other projects that a domain conflicts with: itself, and those whose own names it is below.
func conflicting(own string) []string {
	domains := []string{own}
	for rest := own; ; {
		label, parent, below := strings.Cut(rest, ".")
		if !below {
			return domains
		}
		if label == constants.APIServerFQDNPrefix || label == ingressPrefix {
			domains = append(domains, parent)
		}
		rest = parent
	}
}

// ingressPrefix is the prefix of the names of Ingresses in a shoot.
const ingressPrefix = "ingress"

// conflict returns an error if a shoot cannot have a domain because of that of another one. In a project, one domain must not be below the
// other. A shoot does not keep other projects from having domains below its own or above, as not every owner of a shoot owns the domain:
// those have only to be apart from the names that the shoot itself uses.
func conflict(own, other string, sameProject bool, path *field.Path) *field.Error {
	switch {
	case other == "":
	case own == other:
		return field.Duplicate(path, own)
	case sameProject && dnsname.Within(own, other), dnsname.Within(own, constants.APIServerFQDNPrefix+"."+other), dnsname.Within(own, ingressPrefix+"."+other):
		return field.Forbidden(path, "is below the domain of another shoot")
	case sameProject && dnsname.Within(other, own):
		return field.Forbidden(path, "is above the domain of another shoot")
	}
	return nil
}
