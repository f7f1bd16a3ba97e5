package shootvalidator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// canMove checks that the control plane can be migrated from one seed to the other.
func canMove(in *input) error {
	if kube.Unrestored(in.old.Status.LastOperation) {
		return errors.New("the shoot cannot move again before the operation Restore has succeeded: its backups may not be complete on the seed yet. " +
			"Repair what the operation waits for on this seed; if the seed is lost, an operator restores its shoots with gardenctl recover")
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
	if err := sameInternalDomain(in.oldSeed, in.seed); err != nil {
		return err
	}
	return takes(in)
}

// takes checks what else a shoot requires of the seed, as the scheduler does for its first one. Once the former seed has released the control plane, it would
// be too late.
func takes(in *input) error {
	path := field.NewPath("spec", "seedName")
	if selector := in.shoot.Spec.SeedSelector; selector != nil {
		if err := selects(selector, in.seed); err != nil {
			return field.Forbidden(path, fmt.Sprintf("the seed selector of the shoot (spec.seedSelector): %v", err))
		}
	}
	if class := in.exposureClass; class != nil && class.Scheduling != nil && class.Scheduling.SeedSelector != nil {
		if err := selects(class.Scheduling.SeedSelector, in.seed); err != nil {
			return field.Forbidden(path, fmt.Sprintf("the seed selector of ExposureClass %q (spec.exposureClassName): %v", class.Name, err))
		}
	}
	return workerZones(in.shoot, in.seed, path)
}

// workerZones checks that a seed that takes control planes in zones of the workers only has enough of these.
func workerZones(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed, path *field.Path) error {
	settings, workers := seed.Spec.Settings, shoot.Spec.WorkerZones()
	pinned := shoot.Spec.ControlPlane != nil && len(shoot.Spec.ControlPlane.Zones) > 0
	if settings == nil || settings.ZoneSelection == nil || settings.ZoneSelection.Mode != corev1beta1.ZoneSelectionModeEnforce || len(workers) == 0 || pinned {
		return nil
	}
	want, has := 1, 0
	if zoneTolerant(shoot) {
		want = zonesForZoneTolerance
	}
	for _, zone := range seed.Spec.Provider.Zones {
		if slices.Contains(workers, zone) {
			has++
		}
	}
	if has >= want {
		return nil
	}
	return field.Forbidden(path, fmt.Sprintf("seed %q has %d zones of the workers, which its setting zoneSelection enforces, and the control plane needs %d of them",
		seed.Name, has, want))
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
