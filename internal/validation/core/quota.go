package core

import (
	"fmt"
	"regexp"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// quotaScopes are the kinds that a Quota can be for.
var quotaScopes = []string{
	"core.gardener.cloud/v1beta1, Project", "v1, Secret", "security.gardener.cloud/v1alpha1, WorkloadIdentity",
}

var quotaMetric = regexp.MustCompile(`^(cpu|gpu|memory|storage\.standard|storage\.premium|loadbalancer)$`)

// ValidateQuota checks a new Quota.
func ValidateQuota(quota *corev1beta1.Quota) field.ErrorList {
	return append(validateName(&quota.ObjectMeta, true), quotaSpec(&quota.Spec, field.NewPath("spec"))...)
}

// ValidateQuotaUpdate checks a changed Quota.
func ValidateQuotaUpdate(quota, old *corev1beta1.Quota) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&quota.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, immutable(quota.Spec.Scope, old.Spec.Scope, field.NewPath("spec", "scope"))...)
	return append(errs, ValidateQuota(quota)...)
}

func quotaSpec(spec *corev1beta1.QuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if scope := fmt.Sprintf("%s, %s", spec.Scope.APIVersion, spec.Scope.Kind); !slices.Contains(quotaScopes, scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), scope, quotaScopes))
	}
	for name, quantity := range ordered.Map(spec.Metrics) {
		path := path.Child("metrics").Key(string(name))
		if !quotaMetric.MatchString(string(name)) {
			errs = append(errs, field.Invalid(path, name, "is not a metric; use cpu, gpu, memory, storage.standard, storage.premium or loadbalancer"))
		}
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path, quantity.String(), "must not be negative"))
		}
	}
	if spec.ClusterLifetimeDays != nil && *spec.ClusterLifetimeDays <= 0 {
		errs = append(errs, field.Invalid(path.Child("clusterLifetimeDays"), *spec.ClusterLifetimeDays, "must be at least 1"))
	}
	return errs
}
