package config

import (
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shootdnsrewritingv1alpha1 "gardener.cloud/gardener/api/config/admission/shootdnsrewriting/v1alpha1"
	shootresourcereservationv1alpha1 "gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	shoottolerationrestrictionv1alpha1 "gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// ValidateShootDNSRewriting checks the configuration of the admission plugin ShootDNSRewriting.
func ValidateShootDNSRewriting(config *shootdnsrewritingv1alpha1.Configuration) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("commonSuffixes")
	seen := map[string]bool{}
	for i, suffix := range config.CommonSuffixes {
		// A suffix of one label would match every domain of a top level.
		name := strings.TrimPrefix(suffix, ".")
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			errs = append(errs, field.Invalid(path.Index(i), suffix, "must be a domain, such as example.com"))
		case !strings.Contains(name, "."):
			errs = append(errs, field.Invalid(path.Index(i), suffix, "must have at least two labels"))
		case seen[name]:
			errs = append(errs, field.Duplicate(path.Index(i), suffix))
		}
		seen[name] = true
	}
	return errs
}

// ValidateShootResourceReservation checks the configuration of the admission plugin ShootResourceReservation.
func ValidateShootResourceReservation(config *shootresourcereservationv1alpha1.Configuration) field.ErrorList {
	path := field.NewPath("selector")
	if config.Selector != nil && !config.UseGKEFormula {
		return field.ErrorList{field.Forbidden(path, "has a meaning only if useGKEFormula is true")}
	}
	return selector(config.Selector, path)
}

// ValidateShootTolerationRestriction checks the configuration of the admission plugin ShootTolerationRestriction.
func ValidateShootTolerationRestriction(config *shoottolerationrestrictionv1alpha1.Configuration) field.ErrorList {
	errs := tolerations(config.Defaults, field.NewPath("defaults"))
	return append(errs, tolerations(config.Whitelist, field.NewPath("whitelist"))...)
}

func tolerations(list []corev1beta1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, toleration := range list {
		path := path.Index(i)
		id := toleration.Key
		if toleration.Value != nil {
			id += "=" + *toleration.Value
			for _, message := range validation.IsValidLabelValue(*toleration.Value) {
				errs = append(errs, field.Invalid(path.Child("value"), *toleration.Value, message))
			}
		}
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
		if seen[id] {
			errs = append(errs, field.Duplicate(path, id))
		}
		seen[id] = true
	}
	return errs
}
