package core

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func shootNetworking(networking *corev1beta1.Networking, workerless bool, path *field.Path) field.ErrorList {
	if networking == nil {
		if workerless {
			return nil
		}
		return field.ErrorList{field.Required(path, "must be set")}
	}
	errs := ipFamilies(networking.IPFamilies, path.Child("ipFamilies"))
	families := networking.IPFamilies
	if len(errs) > 0 {
		families = nil
	}
	if !workerless {
		switch {
		case ptr.Deref(networking.Type, "") == "":
			errs = append(errs, field.Required(path.Child("type"), "must be set"))
		default:
			for _, msg := range validation.IsDNS1123Subdomain(*networking.Type) {
				errs = append(errs, field.Invalid(path.Child("type"), *networking.Type, msg))
			}
			for _, msg := range validation.IsValidLabelValue(*networking.Type) {
				errs = append(errs, field.Invalid(path.Child("type"), *networking.Type, msg))
			}
		}
	}
	// An admission plugin, which knows the seed, checks that they do not overlap with each other and with networks of the seed.
	for _, n := range []struct {
		name string
		cidr *string
	}{{"nodes", networking.Nodes}, {"pods", networking.Pods}, {"services", networking.Services}} {
		if n.cidr == nil {
			continue
		}
		_, parseErrs := parseNetwork(*n.cidr, families, path.Child(n.name))
		errs = append(errs, parseErrs...)
	}
	return errs
}
