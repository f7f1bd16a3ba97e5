package extensions

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// ValidateDNSRecord checks a new DNSRecord.
func ValidateDNSRecord(record *extensionsv1alpha1.DNSRecord) field.ErrorList {
	spec := &record.Spec
	errs := validate(&record.ObjectMeta, true, &spec.DefaultSpec)
	errs = append(errs, secretReference(spec.SecretRef, specPath.Child("secretRef"))...)
	errs = append(errs, notEmpty(spec.Region, specPath.Child("region"))...)
	errs = append(errs, notEmpty(spec.Zone, specPath.Child("zone"))...)
	errs = append(errs, dnsName(spec.Name, specPath.Child("name"))...)

	types := []extensionsv1alpha1.DNSRecordType{
		extensionsv1alpha1.DNSRecordTypeA, extensionsv1alpha1.DNSRecordTypeAAAA, extensionsv1alpha1.DNSRecordTypeCNAME, extensionsv1alpha1.DNSRecordTypeTXT,
	}
	errs = append(errs, supported(spec.RecordType, specPath.Child("recordType"), types...)...)

	path := specPath.Child("values")
	switch {
	case len(spec.Values) == 0:
		errs = append(errs, field.Required(path, "must have at least one value"))
	case spec.RecordType == extensionsv1alpha1.DNSRecordTypeCNAME && len(spec.Values) > 1:
		errs = append(errs, field.TooMany(path, len(spec.Values), 1))
	}
	for i, value := range spec.Values {
		errs = append(errs, dnsValue(spec.RecordType, value, path.Index(i))...)
	}
	if spec.TTL != nil && *spec.TTL <= 0 {
		errs = append(errs, field.Invalid(specPath.Child("ttl"), *spec.TTL, "must be at least 1"))
	}
	return errs
}

// ValidateDNSRecordUpdate checks a changed DNSRecord.
func ValidateDNSRecordUpdate(record, old *extensionsv1alpha1.DNSRecord) field.ErrorList {
	if errs, done := frozen(&record.ObjectMeta, record.Spec, old.Spec); done {
		return errs
	}
	errs := unchanged(&record.ObjectMeta, &old.ObjectMeta, &record.Spec.DefaultSpec, &old.Spec.DefaultSpec)
	errs = append(errs, immutable(record.Spec.Name, old.Spec.Name, specPath.Child("name"))...)
	errs = append(errs, immutable(record.Spec.RecordType, old.Spec.RecordType, specPath.Child("recordType"))...)
	return append(errs, ValidateDNSRecord(record)...)
}

// dnsName checks a domain name. Its first label may be a star, and labels may begin with an underscore, as for ACME challenges.
func dnsName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be set")}
	}
	if strings.HasPrefix(name, "*.") {
		return invalid(path, name, validation.IsWildcardDNS1123Subdomain(name))
	}
	plain := strings.ReplaceAll(strings.TrimPrefix(name, "_"), "._", ".")
	return invalid(path, name, validation.IsDNS1123Subdomain(plain))
}

func dnsValue(recordType extensionsv1alpha1.DNSRecordType, value string, path *field.Path) field.ErrorList {
	switch recordType {
	case extensionsv1alpha1.DNSRecordTypeA:
		if addr, err := netip.ParseAddr(value); err != nil || !addr.Is4() {
			return field.ErrorList{field.Invalid(path, value, "must be an IPv4 address")}
		}
	case extensionsv1alpha1.DNSRecordTypeAAAA:
		if addr, err := netip.ParseAddr(value); err != nil || !addr.Is6() || addr.Zone() != "" {
			return field.ErrorList{field.Invalid(path, value, "must be an IPv6 address")}
		}
	case extensionsv1alpha1.DNSRecordTypeCNAME:
		return dnsName(value, path)
	}
	return nil
}

func invalid(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}
