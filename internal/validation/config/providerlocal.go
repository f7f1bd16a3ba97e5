package config

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
)

// ValidateProviderLocal checks the configuration of provider-local.
func ValidateProviderLocal(config *providerlocalconfigv1alpha1.ProviderLocalConfiguration) field.ErrorList {
	var errs field.ErrorList
	if config.ClientConnection != nil {
		errs = append(errs, client(config.ClientConnection, field.NewPath("clientConnection"))...)
	}
	errs = append(errs, leaderElection(config.LeaderElection)...)
	errs = append(errs, logging(config.LogLevel, config.LogFormat)...)
	server := field.NewPath("server")
	if s := config.Server.HealthProbes; s != nil {
		errs = append(errs, port(s.Port, server.Child("healthProbes"))...)
	}
	if s := config.Server.Metrics; s != nil {
		errs = append(errs, port(s.Port, server.Child("metrics"))...)
	}
	if s := config.Server.Webhooks; s != nil {
		at := server.Child("webhooks")
		errs = append(errs, port(s.Port, at)...)
		if (s.Service == "") == (s.URL == "") {
			errs = append(errs, field.Invalid(at.Child("url"), s.URL, "either service or url must be set"))
		}
	}
	errs = append(errs, required(config.Namespace, field.NewPath("namespace"))...)
	classes := field.NewPath("extensionClasses")
	if len(config.ExtensionClasses) == 0 {
		errs = append(errs, field.Required(classes, "at least one class"))
	}
	for i, class := range config.ExtensionClasses {
		errs = append(errs, supported(class, classes.Index(i), extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed,
			extensionsv1alpha1.ExtensionClassGarden)...)
	}
	dns := field.NewPath("dns")
	errs = append(errs, port(config.DNS.Port, dns)...)
	if len(config.DNS.Zones) == 0 {
		errs = append(errs, field.Required(dns.Child("zones"), "at least one domain"))
	}
	for i, zone := range config.DNS.Zones {
		for _, reason := range validation.IsDNS1123Subdomain(strings.TrimSuffix(zone, ".")) {
			errs = append(errs, field.Invalid(dns.Child("zones").Index(i), zone, reason))
		}
	}
	if network := config.Machines.IPv6Network; network != "" {
		at := field.NewPath("machines", "ipv6Network")
		errs = append(errs, cidr.Validate(cidr.Network{Path: at, Value: network})...)
		if !strings.Contains(network, ":") {
			errs = append(errs, field.Invalid(at, network, "must be an IPv6 network"))
		}
	}
	backup := field.NewPath("backup")
	errs = append(errs, absolute(config.Backup.Directory, backup.Child("directory"))...)
	return append(errs, absolute(config.Backup.HostPath, backup.Child("hostPath"))...)
}

func absolute(value string, fieldPath *field.Path) field.ErrorList {
	if path.IsAbs(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(fieldPath, value, "must be an absolute path")}
}
