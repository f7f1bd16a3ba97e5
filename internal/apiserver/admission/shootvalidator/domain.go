package shootvalidator

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// domain checks that the domain of the shoot is its own. All shoots are read only when it gets a domain, which is immutable
// afterwards.
func (p *Plugin) domain(ctx context.Context, in *input) field.ErrorList {
	own := domainOf(in.shoot)
	if own == "" || own == domainOf(in.old) || in.deleting() {
		return nil
	}
	path := field.NewPath("spec", "dns", "domain")
	shoots := &corev1beta1.ShootList{}
	if err := p.GardenCache.List(ctx, shoots); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	for i := range shoots.Items {
		other := &shoots.Items[i]
		if other.Name == in.shoot.Name && other.Namespace == in.shoot.Namespace {
			continue
		}
		if err := conflict(own, domainOf(other), path); err != nil {
			return field.ErrorList{err}
		}
	}
	return nil
}

// conflict returns an error if one of two domains is the other, or is below it.
func conflict(own, other string, path *field.Path) *field.Error {
	switch {
	case other == "":
	case own == other:
		return field.Duplicate(path, own)
	case strings.HasSuffix(own, "."+other):
		return field.Forbidden(path, "is below the domain of another shoot")
	case strings.HasSuffix(other, "."+own):
		return field.Forbidden(path, "is above the domain of another shoot")
	}
	return nil
}

func domainOf(shoot *corev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		return ""
	}
	return *shoot.Spec.DNS.Domain
}
