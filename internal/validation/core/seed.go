package core

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// seedOperations are the operations that the annotation of a Seed can have.
var seedOperations = []string{
	constants.GardenerOperationReconcile, constants.GardenerOperationRenewKubeconfig,
	constants.SeedOperationRenewGardenAccessSecrets, constants.SeedOperationRenewWorkloadIdentityTokens,
}

// ValidateSeed checks a new Seed.
func ValidateSeed(seed *corev1beta1.Seed) field.ErrorList {
	errs := validateLabelName(&seed.ObjectMeta, false)
	if operation := seed.Annotations[constants.GardenerOperation]; operation != "" {
		errs = append(errs, supported(operation, seedOperations, metadataPath.Child("annotations").Key(constants.GardenerOperation))...)
	}
	return append(errs, ValidateSeedSpec(&seed.Spec, field.NewPath("spec"), false)...)
}

// ValidateSeedUpdate checks a changed Seed.
func ValidateSeedUpdate(seed, old *corev1beta1.Seed) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&seed.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, ValidateSeedSpecUpdate(&seed.Spec, &old.Spec, field.NewPath("spec"))...)
	return append(errs, ValidateSeed(seed)...)
}

// ValidateSeedStatusUpdate checks a changed status.
func ValidateSeedStatusUpdate(seed, old *corev1beta1.Seed) field.ErrorList {
	errs := ValidateStatusMetadata(&seed.ObjectMeta, &old.ObjectMeta)
	if old.Status.ClusterIdentity != nil && !equal(seed.Status.ClusterIdentity, old.Status.ClusterIdentity) {
		errs = append(errs, field.Invalid(field.NewPath("status", "clusterIdentity"), seed.Status.ClusterIdentity, "cannot be changed"))
	}
	return errs
}

// ValidateSeedSpecUpdate checks what cannot be changed in the spec of a seed.
func ValidateSeedSpecUpdate(spec, old *corev1beta1.SeedSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	networks := path.Child("networks")
	errs = append(errs, immutable(spec.Networks.Pods, old.Networks.Pods, networks.Child("pods"))...)
	errs = append(errs, immutable(spec.Networks.Services, old.Networks.Services, networks.Child("services"))...)
	if old.Networks.Nodes != nil {
		errs = append(errs, immutable(spec.Networks.Nodes, old.Networks.Nodes, networks.Child("nodes"))...)
	}
	errs = append(errs, immutable(spec.Networks.IPFamilies, old.Networks.IPFamilies, networks.Child("ipFamilies"))...)
	if old.Ingress != nil && spec.Ingress != nil {
		errs = append(errs, immutable(spec.Ingress.Domain, old.Ingress.Domain, path.Child("ingress", "domain"))...)
	}
	if old.Backup != nil && spec.Backup != nil {
		errs = append(errs, immutable(spec.Backup.Provider, old.Backup.Provider, path.Child("backup", "provider"))...)
		errs = append(errs, immutable(spec.Backup.Region, old.Backup.Region, path.Child("backup", "region"))...)
	}
	if len(old.DNS.Defaults) > 0 && len(spec.DNS.Defaults) == 0 {
		errs = append(errs, field.Forbidden(path.Child("dns", "defaults"), "cannot be removed"))
	}
	return errs
}

// ValidateSeedSpec checks the spec of a seed. A template is filled in later and may leave out what is filled in.
func ValidateSeedSpec(spec *corev1beta1.SeedSpec, path *field.Path, template bool) field.ErrorList {
	var errs field.ErrorList
	provider := path.Child("provider")
	if !template {
		if spec.Provider.Type == "" {
			errs = append(errs, field.Required(provider.Child("type"), "must be set"))
		}
		if spec.Provider.Region == "" {
			errs = append(errs, field.Required(provider.Child("region"), "must be set"))
		}
	}
	for i, zone := range spec.Provider.Zones {
		if slices.Contains(spec.Provider.Zones[:i], zone) {
			errs = append(errs, field.Duplicate(provider.Child("zones").Index(i), zone))
		}
	}
	errs = append(errs, seedDNS(&spec.DNS, path.Child("dns"), template, spec.Ingress != nil)...)
	errs = append(errs, seedIngress(spec.Ingress, path.Child("ingress"), template)...)
	errs = append(errs, seedNetworks(&spec.Networks, path.Child("networks"), template)...)
	if spec.Backup != nil {
		errs = append(errs, backup(spec.Backup, spec.Provider.Type, template, path.Child("backup"))...)
	}

	taints := sets.New[string]()
	for i, taint := range spec.Taints {
		path := path.Child("taints").Index(i)
		if taint.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), "must be set"))
		}
		id := taint.Key
		if taint.Value != nil {
			id += "=" + *taint.Value
		}
		if taints.Has(id) {
			errs = append(errs, field.Duplicate(path, id))
		}
		taints.Insert(id)
	}
	if volume := spec.Volume; volume != nil {
		errs = append(errs, seedVolume(volume, path.Child("volume"))...)
	}
	if spec.Settings != nil {
		errs = append(errs, seedSettings(spec.Settings, spec.Provider.Zones, template && len(spec.Provider.Zones) == 0, path.Child("settings"))...)
	}
	errs = append(errs, extensions(spec.Extensions, path.Child("extensions"))...)
	errs = append(errs, namedResources(spec.Resources, path.Child("resources"))...)
	return errs
}

func seedDNS(dns *corev1beta1.SeedDNS, path *field.Path, template, hasIngress bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case dns.Provider != nil:
		path := path.Child("provider")
		if dns.Provider.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), "must be set"))
		}
		if dns.Provider.CredentialsRef == nil {
			errs = append(errs, field.Required(path.Child("credentialsRef"), "must be set"))
		} else {
			errs = append(errs, credentialsReference(*dns.Provider.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
		}
	case !template || hasIngress:
		errs = append(errs, field.Required(path.Child("provider"), "must be set, as the seed has an ingress domain"))
	}
	if dns.Internal == nil {
		errs = append(errs, field.Required(path.Child("internal"), "must be set"))
	} else {
		errs = append(errs, dnsProviderConfig(dns.Internal, path.Child("internal"))...)
	}
	domains := sets.New[string]()
	for i := range dns.Defaults {
		path := path.Child("defaults").Index(i)
		errs = append(errs, dnsProviderConfig(&dns.Defaults[i], path)...)
		if domain := dns.Defaults[i].Domain; domain != "" && domains.Has(domain) {
			errs = append(errs, field.Duplicate(path.Child("domain"), domain))
		} else {
			domains.Insert(domain)
		}
	}
	return errs
}

func dnsProviderConfig(config *corev1beta1.SeedDNSProviderConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be set"))
	}
	if config.Domain == "" {
		errs = append(errs, field.Required(path.Child("domain"), "must be set"))
	} else {
		errs = append(errs, dnsSubdomain(config.Domain, path.Child("domain"))...)
	}
	return append(errs, credentialsReference(config.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

func dnsSubdomain(domain string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(domain) {
		errs = append(errs, field.Invalid(path, domain, msg))
	}
	return errs
}

func seedIngress(ingress *corev1beta1.Ingress, path *field.Path, template bool) field.ErrorList {
	if ingress == nil {
		if template {
			return nil
		}
		return field.ErrorList{field.Required(path, "must be set")}
	}
	var errs field.ErrorList
	switch {
	case ingress.Domain == "" && !template:
		errs = append(errs, field.Required(path.Child("domain"), "must be set"))
	case ingress.Domain != "":
		errs = append(errs, dnsSubdomain(ingress.Domain, path.Child("domain"))...)
	}
	return append(errs, supported(ingress.Controller.Kind, []string{constants.IngressKindNginx}, path.Child("controller", "kind"))...)
}

func seedNetworks(networks *corev1beta1.SeedNetworks, path *field.Path, template bool) field.ErrorList {
	errs := ipFamilies(networks.IPFamilies, path.Child("ipFamilies"))
	families := networks.IPFamilies
	if len(errs) > 0 {
		families = nil // networks of any family are possible
	}
	var all []network
	add := func(cidr string, path *field.Path) {
		n, parseErrs := parseNetwork(cidr, families, path)
		all, errs = append(all, n), append(errs, parseErrs...)
	}
	if networks.Pods != "" || !template {
		add(networks.Pods, path.Child("pods"))
	}
	if networks.Nodes != nil {
		add(*networks.Nodes, path.Child("nodes"))
	}
	if networks.Services != "" || !template {
		add(networks.Services, path.Child("services"))
	}
	errs = append(errs, disjoint(all)...)
	errs = append(errs, unreserved(all)...)

	if defaults := networks.ShootDefaults; defaults != nil {
		all = nil
		if defaults.Pods != nil {
			add(*defaults.Pods, path.Child("shootDefaults", "pods"))
		}
		if defaults.Services != nil {
			add(*defaults.Services, path.Child("shootDefaults", "services"))
		}
		errs = append(errs, disjoint(all)...)
		errs = append(errs, unreserved(all)...)
	}
	return errs
}

// backup checks the configuration of etcd backups, for seeds and for self-hosted shoots.
func backup(backup *corev1beta1.Backup, providerType string, template bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if backup.Provider == "" && !template {
		errs = append(errs, field.Required(path.Child("provider"), "must be set"))
	}
	if (backup.Provider != "" && providerType != "" || !template) && backup.Provider != providerType && ptr.Deref(backup.Region, "") == "" {
		errs = append(errs, field.Invalid(path.Child("region"), "", "must be set, as the backup provider is not the infrastructure provider"))
	}
	if backup.CredentialsRef == nil {
		return append(errs, field.Required(path.Child("credentialsRef"), "must be set"))
	}
	return append(errs, credentialsReference(*backup.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

func seedVolume(volume *corev1beta1.SeedVolume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if volume.MinimumSize != nil {
		errs = append(errs, nonNegative(*volume.MinimumSize, path.Child("minimumSize"))...)
	}
	purposes := sets.New[string]()
	for i, provider := range volume.Providers {
		path := path.Child("providers").Index(i)
		if provider.Purpose == "" {
			errs = append(errs, field.Required(path.Child("purpose"), "must be set"))
		} else if purposes.Has(provider.Purpose) {
			errs = append(errs, field.Duplicate(path.Child("purpose"), provider.Purpose))
		}
		purposes.Insert(provider.Purpose)
		if provider.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		}
	}
	return errs
}

// extensions checks spec.extensions of a seed or shoot. A type becomes part of a label.
func extensions(list []corev1beta1.Extension, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[string]()
	for i, extension := range list {
		path := path.Index(i).Child("type")
		if extension.Type == "" {
			errs = append(errs, field.Required(path, "must be set"))
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(extension.Type) {
			errs = append(errs, field.Invalid(path, extension.Type, msg))
		}
		if types.Has(extension.Type) {
			errs = append(errs, field.Duplicate(path, extension.Type))
		}
		types.Insert(extension.Type)
	}
	return errs
}

// namedResources checks the objects that provider configuration can refer to by name.
func namedResources(list []corev1beta1.NamedResourceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, resource := range list {
		path := path.Index(i)
		if resource.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		} else if names.Has(resource.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), resource.Name))
		}
		names.Insert(resource.Name)
		errs = append(errs, crossVersionReference(resource.ResourceRef, referenceKinds, path.Child("resourceRef"))...)
	}
	return errs
}
