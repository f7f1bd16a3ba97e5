package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
	"gardener.cloud/gardener/pkg/maintenance"
)

// How long a maintenance time window may be.
const (
	minTimeWindow = 30 * time.Minute
	maxTimeWindow = 6 * time.Hour
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// ValidateGarden checks a new Garden.
func ValidateGarden(garden *operatorv1alpha1.Garden) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&garden.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, operation(garden)...)
	errs = append(errs, sharedNetworks(garden)...)
	return append(errs, validateSpec(garden)...)
}

// sharedNetworks refuses service networks of the virtual cluster that overlap with networks of the runtime cluster.
func sharedNetworks(garden *operatorv1alpha1.Garden) field.ErrorList {
	runtime, path := garden.Spec.RuntimeCluster.Networking, specPath.Child("runtimeCluster", "networking")
	networks := slices.Concat(
		cidr.List(path.Child("nodes"), runtime.Nodes), cidr.List(path.Child("pods"), runtime.Pods), cidr.List(path.Child("services"), runtime.Services))
	var errs field.ErrorList
	for _, virtual := range cidr.List(specPath.Child("virtualCluster", "networking", "services"), garden.Spec.VirtualCluster.Networking.Services) {
		for _, network := range networks {
			errs = append(errs, cidr.ValidateDisjoint(network, virtual)...)
		}
	}
	return errs
}

func validateSpec(garden *operatorv1alpha1.Garden) field.ErrorList {
	var errs field.ErrorList
	spec := &garden.Spec

	providers := sets.New[string]()
	if spec.DNS != nil {
		for i, provider := range spec.DNS.Providers {
			path := specPath.Child("dns", "providers").Index(i)
			errs = append(errs, required(provider.Name, path.Child("name"))...)
			errs = append(errs, required(provider.Type, path.Child("type"))...)
			errs = append(errs, required(provider.SecretRef.Name, path.Child("secretRef", "name"))...)
			errs = append(errs, unique(providers, provider.Name, path.Child("name"))...)
		}
		if len(spec.DNS.Providers) == 0 {
			errs = append(errs, field.Required(specPath.Child("dns", "providers"), "must have at least one provider"))
		}
	}
	types := sets.New[string]()
	for i, extension := range spec.Extensions {
		path := specPath.Child("extensions").Index(i).Child("type")
		errs = append(errs, required(extension.Type, path)...)
		errs = append(errs, unique(types, extension.Type, path)...)
	}
	names := sets.New[string]()
	for i, resource := range spec.Resources {
		path := specPath.Child("resources").Index(i)
		errs = append(errs, required(resource.Name, path.Child("name"))...)
		errs = append(errs, unique(names, resource.Name, path.Child("name"))...)
		if ref := resource.ResourceRef; ref.APIVersion != "v1" || ref.Kind != "Secret" && ref.Kind != "ConfigMap" {
			errs = append(errs, field.NotSupported(path.Child("resourceRef"), ref.APIVersion+", "+ref.Kind, []string{"v1, Secret", "v1, ConfigMap"}))
		}
		errs = append(errs, required(resource.ResourceRef.Name, path.Child("resourceRef", "name"))...)
	}

	errs = append(errs, runtimeCluster(garden, providers, specPath.Child("runtimeCluster"))...)
	errs = append(errs, virtualCluster(garden, providers, specPath.Child("virtualCluster"))...)
	return append(errs, dnsRecords(garden)...)
}

// dnsRecords checks that no two hosts would have a DNSRecord of the same name, with which no pass could begin. Duplicates in a list of domains, and providers
// that do not exist, are reported elsewhere.
func dnsRecords(garden *operatorv1alpha1.Garden) field.ErrorList {
	if garden.Spec.DNS == nil || len(garden.Spec.DNS.Providers) == 0 {
		return nil
	}
	var errs field.ErrorList
	providers := garden.Spec.DNS.Providers
	seen := map[string]string{} // hosts by the names of their DNSRecords
	add := func(domain operatorv1alpha1.DNSDomain, path *field.Path, hosts ...string) {
		i := 0
		if domain.Provider != nil {
			i = slices.IndexFunc(providers, func(p operatorv1alpha1.DNSProvider) bool { return p.Name == *domain.Provider })
		}
		if i < 0 {
			return
		}
		for _, host := range hosts {
			name := operatorv1alpha1.DNSRecordName(host, providers[i].Type)
			if other, ok := seen[name]; ok {
				errs = append(errs, field.Invalid(path.Child("name"), domain.Name, fmt.Sprintf("the DNSRecord of %s would be named %q, as that of %s", host, name, other)))
				return // one error for a domain is enough
			}
			seen[name] = host
		}
	}
	list := func(domains []operatorv1alpha1.DNSDomain, path *field.Path, prefixes ...string) {
		names := sets.New[string]()
		for i, domain := range domains {
			if names.Has(domain.Name) {
				continue
			}
			names.Insert(domain.Name)
			var hosts []string
			for _, prefix := range prefixes {
				hosts = append(hosts, prefix+domain.Name)
			}
			add(domain, path.Index(i), hosts...)
		}
	}
	list(garden.Spec.VirtualCluster.DNS.Domains, specPath.Child("virtualCluster", "dns", "domains"), "api.", "gardener.")
	ingress := garden.Spec.RuntimeCluster.Ingress.Domains
	list(ingress, specPath.Child("runtimeCluster", "ingress", "domains"), "*.")
	if c := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer; c != nil && c.Domain != nil {
		_, parent, _ := strings.Cut(c.Domain.Name, ".")
		covered := slices.ContainsFunc(ingress, func(d operatorv1alpha1.DNSDomain) bool { return d.Name == parent })
		if !covered {
			add(*c.Domain, specPath.Child("virtualCluster", "gardener", "gardenerDiscoveryServer", "domain"), c.Domain.Name)
		}
	}
	return errs
}

// ValidateGardenUpdate checks a changed Garden. The version is that of Kubernetes which the virtual cluster has: that of the old Garden, unless it has never
// run. Empty if there is none.
func ValidateGardenUpdate(garden, old *operatorv1alpha1.Garden, version string) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&garden.ObjectMeta, &old.ObjectMeta, metadataPath)
	if garden.Annotations[constants.GardenerOperation] != old.Annotations[constants.GardenerOperation] {
		// An operation that the old object has may be in progress, and would not be possible a second time.
		errs = append(errs, operation(garden)...)
	}
	runtime, oldRuntime, path := &garden.Spec.RuntimeCluster, &old.Spec.RuntimeCluster, specPath.Child("runtimeCluster")
	errs = append(errs, immutable(runtime.Networking.IPFamilies, oldRuntime.Networking.IPFamilies, path.Child("networking", "ipFamilies"))...)

	if oldDomains := oldRuntime.Ingress.Domains; len(oldDomains) > 0 && len(runtime.Ingress.Domains) > 0 {
		// Names of components are below the first domain. Others are for Ingresses only.
		errs = append(errs, immutable(runtime.Ingress.Domains[0].Name, oldDomains[0].Name, path.Child("ingress", "domains").Index(0).Child("name"))...)
	}
	for _, networks := range []struct {
		name     string
		new, old []string
	}{
		{"nodes", runtime.Networking.Nodes, oldRuntime.Networking.Nodes},
		{"pods", runtime.Networking.Pods, oldRuntime.Networking.Pods},
		{"services", runtime.Networking.Services, oldRuntime.Networking.Services},
	} {
		errs = append(errs, appendOnly(networks.new, networks.old, path.Child("networking", networks.name))...)
	}

	virtual, oldVirtual, path := &garden.Spec.VirtualCluster, &old.Spec.VirtualCluster, specPath.Child("virtualCluster")
	if domains, oldDomains := virtual.DNS.Domains, oldVirtual.DNS.Domains; len(domains) > 0 && len(oldDomains) > 0 {
		// Gardenlets, kubeconfigs and the issuer of tokens have the first domain. Its DNS provider may change, and there may be more domains.
		errs = append(errs, immutable(domains[0].Name, oldDomains[0].Name, path.Child("dns", "domains").Index(0).Child("name"))...)
	}
	errs = append(errs, immutable(virtual.Gardener.ClusterIdentity, oldVirtual.Gardener.ClusterIdentity, path.Child("gardener", "clusterIdentity"))...)
	if highlyAvailable(old) && !highlyAvailable(garden) {
		errs = append(errs, field.Forbidden(path.Child("controlPlane", "highAvailability"), "cannot be removed: members of etcd would have to be removed"))
	}
	errs = append(errs, backupUpdate(virtual.ETCD, oldVirtual.ETCD, path.Child("etcd", "main", "backup"))...)
	errs = append(errs, versionUpdate(virtual.Kubernetes.Version, version, path.Child("kubernetes", "version"))...)
	errs = append(errs, appendOnly(virtual.Networking.Services, oldVirtual.Networking.Services, path.Child("networking", "services"))...)
	errs = append(errs, discoveryUpdate(garden, old, path.Child("gardener", "gardenerDiscoveryServer"))...)
	errs = append(errs, encryptionUpdate(garden, old, path)...)
	if len(sharedNetworks(old)) == 0 { // Networks cannot be removed.
		errs = append(errs, sharedNetworks(garden)...)
	}
	if apiequality.Semantic.DeepEqual(garden.Spec, old.Spec) {
		return errs // Finalizers and annotations of a Garden that a new rule refuses can still be changed.
	}
	return append(errs, validateSpec(garden)...)
}

// appendOnly refuses changes and removals of networks: pods and Services have addresses in them.
func appendOnly(networks, old []string, path *field.Path) field.ErrorList {
	if len(networks) < len(old) || !slices.Equal(networks[:len(old)], old) {
		return field.ErrorList{field.Forbidden(path, "a network can only be added at the end")}
	}
	return nil
}

// discoveryUpdate keeps the issuer of tokens, which third parties trust: the host of gardener-discovery-server is part of it.
func discoveryUpdate(garden, old *operatorv1alpha1.Garden, path *field.Path) field.ErrorList {
	config, oldConfig := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer, old.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer
	switch {
	case oldConfig == nil:
		return nil
	case config == nil:
		return field.ErrorList{field.Forbidden(path, "cannot be removed: third parties trust tokens by what it publishes")}
	}
	return immutable(discoveryHost(garden), discoveryHost(old), path.Child("domain", "name"))
}

// discoveryHost is the host of gardener-discovery-server. The DNS provider of its record may change.
func discoveryHost(garden *operatorv1alpha1.Garden) string {
	if domain := garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer.Domain; domain != nil {
		return domain.Name
	}
	if domains := garden.Spec.RuntimeCluster.Ingress.Domains; len(domains) > 0 {
		return "discovery." + domains[0].Name
	}
	return ""
}

func runtimeCluster(garden *operatorv1alpha1.Garden, providers sets.Set[string], path *field.Path) field.ErrorList {
	runtime := &garden.Spec.RuntimeCluster
	errs := domains(runtime.Ingress.Domains, providers, path.Child("ingress", "domains"))
	if runtime.Ingress.Controller.Kind != "nginx" {
		errs = append(errs, field.NotSupported(path.Child("ingress", "controller", "kind"), runtime.Ingress.Controller.Kind, []string{"nginx"}))
	}

	networking := path.Child("networking")
	for i, family := range runtime.Networking.IPFamilies {
		path := networking.Child("ipFamilies").Index(i)
		if family != corev1beta1.IPFamilyIPv4 && family != corev1beta1.IPFamilyIPv6 {
			errs = append(errs, field.NotSupported(path, family, []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}))
		}
		if slices.Contains(runtime.Networking.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(path, family))
		}
	}
	nodes := cidr.List(networking.Child("nodes"), runtime.Networking.Nodes)
	pods := cidr.List(networking.Child("pods"), runtime.Networking.Pods)
	services := cidr.List(networking.Child("services"), runtime.Networking.Services)
	if len(pods) == 0 {
		errs = append(errs, field.Required(networking.Child("pods"), "must have at least one network"))
	}
	if len(services) == 0 {
		errs = append(errs, field.Required(networking.Child("services"), "must have at least one network"))
	}
	networks := slices.Concat(nodes, pods, services)
	errs = append(errs, cidr.Validate(networks...)...)
	errs = append(errs, cidr.ValidateDisjoint(networks...)...)
	errs = append(errs, cidr.Validate(cidr.List(networking.Child("blockCIDRs"), runtime.Networking.BlockCIDRs)...)...)

	zones := sets.New[string]()
	for i, zone := range runtime.Provider.Zones {
		path := path.Child("provider", "zones").Index(i)
		errs = append(errs, required(zone, path)...)
		errs = append(errs, unique(zones, zone, path)...)
	}
	if settings := runtime.Settings; settings != nil {
		errs = append(errs, runtimeSettings(garden, settings, path.Child("settings"))...)
	}
	if volume := runtime.Volume; volume != nil && volume.MinimumSize != nil && volume.MinimumSize.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("volume", "minimumSize"), volume.MinimumSize.String(), "must be above zero"))
	}
	return errs
}

func runtimeSettings(garden *operatorv1alpha1.Garden, settings *operatorv1alpha1.Settings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if services := settings.LoadBalancerServices; services != nil {
		path := path.Child("loadBalancerServices")
		errs = append(errs, apivalidation.ValidateAnnotations(services.Annotations, path.Child("annotations"))...)
		if policy := services.ExternalTrafficPolicy; policy != nil && !slices.Contains(trafficPolicies, *policy) {
			errs = append(errs, field.NotSupported(path.Child("externalTrafficPolicy"), *policy, trafficPolicies))
		}
	}
	if routing := settings.TopologyAwareRouting; routing != nil && routing.Enabled {
		if path := path.Child("topologyAwareRouting", "enabled"); !highlyAvailable(garden) || len(garden.Spec.RuntimeCluster.Provider.Zones) < 2 {
			errs = append(errs, field.Forbidden(path, "needs a highly available control plane and more than one zone"))
		}
	}
	if autoscaler := settings.VerticalPodAutoscaler; autoscaler != nil {
		errs = append(errs, quantities(autoscaler.MaxAllowed, path.Child("verticalPodAutoscaler", "maxAllowed"))...)
	}
	return errs
}

func highlyAvailable(garden *operatorv1alpha1.Garden) bool {
	controlPlane := garden.Spec.VirtualCluster.ControlPlane
	return controlPlane != nil && controlPlane.HighAvailability != nil
}

func virtualCluster(garden *operatorv1alpha1.Garden, providers sets.Set[string], path *field.Path) field.ErrorList {
	virtual := &garden.Spec.VirtualCluster
	errs := domains(virtual.DNS.Domains, providers, path.Child("dns", "domains"))
	if most := maxHosts / 2; len(virtual.DNS.Domains) > most {
		errs = append(errs, field.TooMany(path.Child("dns", "domains"), len(virtual.DNS.Domains), most))
	}
	if c := virtual.Kubernetes.KubeAPIServer; c != nil && c.SNI != nil {
		errs = append(errs, sni(c.SNI, virtual.DNS.Domains, path.Child("kubernetes", "kubeAPIServer", "sni"))...)
	}
	if etcd := virtual.ETCD; etcd != nil {
		errs = append(errs, etcds(etcd, garden.Spec.RuntimeCluster.Provider.Region, path.Child("etcd"))...)
	}
	errs = append(errs, kubernetes(&virtual.Kubernetes, path.Child("kubernetes"))...)
	errs = append(errs, gardener(virtual, providers, path.Child("gardener"))...)
	errs = append(errs, timeWindow(virtual.Maintenance.TimeWindow, path.Child("maintenance", "timeWindow"))...)

	services := path.Child("networking", "services")
	if len(virtual.Networking.Services) == 0 {
		errs = append(errs, field.Required(services, "must have at least one network"))
	}
	errs = append(errs, cidr.Validate(cidr.List(services, virtual.Networking.Services)...)...)
	return append(errs, cidr.ValidateFamilies(services, virtual.Networking.Services)...)
}

// timeWindow checks that a time window is long enough for maintenance, and leaves most of the day without it.
func timeWindow(window corev1beta1.MaintenanceTimeWindow, path *field.Path) field.ErrorList {
	begin, err := time.Parse(maintenance.Layout, window.Begin)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("begin"), window.Begin, "must be HHMMSS+ZONE, such as 220000+0100")}
	}
	end, err := time.Parse(maintenance.Layout, window.End)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("end"), window.End, "must be HHMMSS+ZONE, such as 220000+0100")}
	}
	length := end.Sub(begin) % (24 * time.Hour)
	if length < 0 {
		length += 24 * time.Hour // it ends on the next day
	}
	if length < minTimeWindow || length > maxTimeWindow {
		return field.ErrorList{field.Invalid(path, window.Begin+" to "+window.End, fmt.Sprintf("must be between %s and %s long", minTimeWindow, maxTimeWindow))}
	}
	return nil
}

// domains checks that there is a domain, that none is a duplicate, and that their DNS providers exist.
func domains(list []operatorv1alpha1.DNSDomain, providers sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(path, "must have at least one domain"))
	}
	names := sets.New[string]()
	for i := range list {
		errs = append(errs, domain(&list[i], providers, path.Index(i))...)
		errs = append(errs, unique(names, list[i].Name, path.Index(i).Child("name"))...)
	}
	return errs
}

func domain(domain *operatorv1alpha1.DNSDomain, providers sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if domain == nil {
		return nil
	}
	for _, message := range validation.IsDNS1123Subdomain(domain.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), domain.Name, message))
	}
	if domain.Provider != nil && !providers.Has(*domain.Provider) {
		errs = append(errs, field.Invalid(path.Child("provider"), *domain.Provider, "must be the name of a provider in spec.dns.providers"))
	}
	return errs
}

func versionUpdate(version, oldVersion string, path *field.Path) field.ErrorList {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return nil // another check refuses it
	}
	old, err := semver.NewVersion(oldVersion)
	if err != nil {
		return nil
	}
	switch {
	case parsed.LessThan(old):
		return field.ErrorList{field.Forbidden(path, "cannot go back from "+oldVersion)}
	case parsed.Major() != old.Major() || parsed.Minor() > old.Minor()+1:
		return field.ErrorList{field.Forbidden(path, "cannot skip a minor version from "+oldVersion)}
	}
	return nil
}
