package shootvalidator

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// canMove checks that the control plane can be migrated from one seed to the other.
func canMove(in *input) error {
	if last := in.old.Status.LastOperation; last != nil && last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded {
		return errors.New("the shoot cannot move again before the operation Restore has succeeded: its backups may not be complete on the seed yet")
	}
	for _, seed := range []*corev1beta1.Seed{in.oldSeed, in.seed} {
		if seed.Spec.Backup == nil {
			return fmt.Errorf("seed %q has no backup configured, which it takes to move the shoot", seed.Name)
		}
	}
	if was, is := in.oldSeed.Spec.Provider.Type, in.seed.Spec.Provider.Type; was != is {
		return fmt.Errorf("the shoot cannot move from a seed of type %q to one of type %q", was, is)
	}
	if ptr.Deref(in.old.Status.SeedName, "") == in.seed.Name {
		return nil // its control plane is still there, and must not be kept from staying
	}
	return sameInternalDomain(in.oldSeed, in.seed)
}

// sameInternalDomain checks that nodes reach the control plane on the other seed: they know it by its name in the internal domain.
func sameInternalDomain(from, to *corev1beta1.Seed) error {
	was, is := internalDomain(from), internalDomain(to)
	if was == is {
		return nil
	}
	name := func(domain string) string {
		if domain == "" {
			return "none"
		}
		return strconv.Quote(domain)
	}
	return field.Forbidden(field.NewPath("spec", "seedName"), fmt.Sprintf("the internal domain (spec.dns.internal.domain) of seed %q is %s, but that of seed %q is %s, "+
		"by which the nodes of the shoot reach its control plane", to.Name, name(is), from.Name, name(was)))
}

func internalDomain(seed *corev1beta1.Seed) string {
	if seed.Spec.DNS.Internal == nil {
		return ""
	}
	return seed.Spec.DNS.Internal.Domain
}
