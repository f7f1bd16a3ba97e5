package shootvalidator

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/cloudprofile"
)

func oneOf(value string, offered []string, path *field.Path) field.ErrorList {
	if slices.Contains(offered, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, offered)}
}

// region checks that the profile has the region of the shoot.
func region(in *input) field.ErrorList {
	if in.shoot.Spec.Region == in.old.Spec.Region {
		return nil
	}
	var names []string
	for _, r := range in.profile.Regions {
		names = append(names, r.Name)
	}
	return oneOf(in.shoot.Spec.Region, names, field.NewPath("spec", "region"))
}

// accessRestrictions checks that region and seed support the access restrictions of the shoot.
func accessRestrictions(in *input) field.ErrorList {
	var (
		errs  field.ErrorList
		names []string
	)
	if r := cloudprofile.FindRegion(in.profile, in.shoot.Spec.Region); r != nil {
		for _, restriction := range r.AccessRestrictions {
			names = append(names, restriction.Name)
		}
	}
	changed := !apiequality.Semantic.DeepEqual(in.shoot.Spec.AccessRestrictions, in.old.Spec.AccessRestrictions)
	for i, restriction := range in.shoot.Spec.AccessRestrictions {
		path := field.NewPath("spec", "accessRestrictions").Index(i)
		errs = append(errs, oneOf(restriction.Name, names, path)...)
		if in.seed != nil && changed && !supports(in.seed, restriction.Name) {
			errs = append(errs, field.Forbidden(path, "is not supported by seed "+in.seed.Name+", which the shoot is bound to"))
		}
	}
	return errs
}

// controlPlaneZones checks that zones for the control plane may be chosen, and that the seed has them.
func controlPlaneZones(in *input) field.ErrorList {
	c := in.shoot.Spec.ControlPlane
	if c == nil || len(c.Zones) == 0 {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "controlPlane", "zones")
	if allowed := in.profile.ControlPlane; allowed == nil || allowed.AllowZonePinning == nil || !*allowed.AllowZonePinning {
		errs = append(errs, field.Forbidden(path, "the cloud profile does not allow to choose the zones of the control plane"))
	}
	if in.seed == nil {
		return errs
	}
	for i, zone := range c.Zones {
		if !slices.Contains(in.seed.Spec.Provider.Zones, zone) {
			errs = append(errs, field.Invalid(path.Index(i), zone, "is no zone of seed "+in.seed.Name))
		}
	}
	return errs
}

// zones checks that the region has the zones of a pool, each once.
func zones(in *input, worker, before *corev1beta1.Worker, path *field.Path) field.ErrorList {
	if before != nil && apiequality.Semantic.DeepEqual(worker.Zones, before.Zones) {
		return nil
	}
	var errs field.ErrorList
	var names []string
	if r := cloudprofile.FindRegion(in.profile, in.shoot.Spec.Region); r != nil {
		for _, zone := range r.Zones {
			names = append(names, zone.Name)
		}
	}
	for i, zone := range worker.Zones {
		path := path.Child("zones").Index(i)
		switch {
		case slices.Contains(worker.Zones[:i], zone):
			errs = append(errs, field.Duplicate(path, zone))
		case before != nil && slices.Contains(before.Zones, zone):
		case len(names) == 0:
			errs = append(errs, field.Invalid(path, zone, "the cloud profile has no zones in this region"))
		default:
			errs = append(errs, oneOf(zone, names, path)...)
		}
	}
	return errs
}
