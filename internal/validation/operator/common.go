package operator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var trafficPolicies = []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}

func immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

func required(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	return nil
}

// unique refuses a value that is in the set, and adds it. required checks empty values.
func unique(seen sets.Set[string], value string, path *field.Path) field.ErrorList {
	if value != "" && seen.Has(value) {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	seen.Insert(value)
	return nil
}

func quantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if value := list[name]; value.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), value.String(), "must not be negative"))
		}
	}
	return errs
}
