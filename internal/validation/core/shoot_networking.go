package core

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
		case deref(networking.Type) == "":
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
	var all []network
	for _, n := range []struct {
		name string
		cidr *string
	}{{"nodes", networking.Nodes}, {"pods", networking.Pods}, {"services", networking.Services}} {
		if n.cidr == nil {
			continue
		}
		parsed, parseErrs := parseNetwork(*n.cidr, families, path.Child(n.name))
		all, errs = append(all, parsed), append(errs, parseErrs...)
	}
	errs = append(errs, disjoint(all)...)
	return append(errs, unreserved(all)...)
}
