package config

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
)

// ValidateAdmissionController checks the configuration of the gardener-admission-controller.
func ValidateAdmissionController(config *admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration) field.ErrorList {
	errs := client(&config.GardenClientConnection, field.NewPath("gardenClientConnection"))
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	path := field.NewPath("server")
	errs = append(errs, port(config.Server.Webhooks.Port, path.Child("webhooks"))...)
	errs = append(errs, required(config.Server.Webhooks.TLS.ServerCertDir, path.Child("webhooks", "tls", "serverCertDir"))...)
	if server := config.Server.HealthProbes; server != nil {
		errs = append(errs, port(server.Port, path.Child("healthProbes"))...)
	}
	if server := config.Server.Metrics; server != nil {
		errs = append(errs, port(server.Port, path.Child("metrics"))...)
	}
	if limits := config.Server.ResourceAdmissionConfiguration; limits != nil {
		errs = append(errs, resourceAdmission(limits, path.Child("resourceAdmissionConfiguration"))...)
	}
	return errs
}

func resourceAdmission(config *admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, limit := range config.Limits {
		path := path.Child("limits").Index(i)
		for _, list := range []struct {
			name   string
			values []string
			core   bool // the empty text is the core API group
		}{{"apiGroups", limit.APIGroups, true}, {"apiVersions", limit.APIVersions, false}, {"resources", limit.Resources, false}} {
			if len(list.values) == 0 {
				errs = append(errs, field.Required(path.Child(list.name), "must have at least one element"))
			}
			for j, value := range list.values {
				if !list.core {
					errs = append(errs, required(value, path.Child(list.name).Index(j))...)
				}
			}
		}
		if limit.Size == nil && limit.Count == nil {
			errs = append(errs, field.Required(path, "must have a size or a count"))
		}
		if limit.Size != nil && limit.Size.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("size"), limit.Size.String(), "must not be negative"))
		}
		errs = append(errs, notNegative(limit.Count, path.Child("count"))...)
	}
	for i, subject := range config.UnrestrictedSubjects {
		errs = append(errs, unrestricted(subject, path.Child("unrestrictedSubjects").Index(i))...)
	}
	if mode := config.OperationMode; mode != nil {
		errs = append(errs, supported(*mode, path.Child("operationMode"),
			admissioncontrollerconfigv1alpha1.AdmissionModeBlock, admissioncontrollerconfigv1alpha1.AdmissionModeLog)...)
	}
	return errs
}

func unrestricted(subject rbacv1.Subject, path *field.Path) field.ErrorList {
	errs := required(subject.Name, path.Child("name"))
	switch subject.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, supported(subject.APIGroup, path.Child("apiGroup"), rbacv1.GroupName)...)
		if subject.Namespace != "" {
			errs = append(errs, field.Forbidden(path.Child("namespace"), "must not be set for users and groups"))
		}
	case rbacv1.ServiceAccountKind:
		errs = append(errs, supported(subject.APIGroup, path.Child("apiGroup"), "")...)
		errs = append(errs, required(subject.Namespace, path.Child("namespace"))...)
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	return errs
}
