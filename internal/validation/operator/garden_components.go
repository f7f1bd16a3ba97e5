package operator

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/cidr"
	"gardener.cloud/gardener/internal/validation/core"
)

// gardenerGroups are the API groups that the gardener-apiserver serves, and stores itself.
var gardenerGroups = []string{
	"core.gardener.cloud", "operations.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud", "settings.gardener.cloud",
}

// alwaysEncrypted are resources of the gardener-apiserver that are encrypted without any configuration.
var alwaysEncrypted = []string{
	"controllerdeployments.core.gardener.cloud", "controllerregistrations.core.gardener.cloud", "internalsecrets.core.gardener.cloud",
	"shootstates.core.gardener.cloud",
}

func kubernetes(config *operatorv1alpha1.Kubernetes, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := semver.StrictNewVersion(config.Version); err != nil {
		errs = append(errs, field.Invalid(path.Child("version"), config.Version, "must be a version such as 1.33.0"))
	}
	if config.KubeAPIServer != nil {
		path := path.Child("kubeAPIServer")
		errs = append(errs, core.KubeAPIServer(&config.KubeAPIServer.KubeAPIServerConfig, config.Version, path)...)
		errs = append(errs, kubeAPIServer(config.KubeAPIServer, path)...)
	}
	if manager := config.KubeControllerManager; manager != nil {
		path := path.Child("kubeControllerManager")
		errs = append(errs, core.KubeControllerManager(&manager.KubeControllerManagerConfig, config.Version, path)...)
		if duration := manager.CertificateSigningDuration; duration != nil && duration.Duration <= 0 {
			errs = append(errs, field.Invalid(path.Child("certificateSigningDuration"), duration.Duration.String(), "must be above zero"))
		}
	}
	return errs
}

// kubeAPIServer checks the settings that only the kube-apiserver of a garden has.
func kubeAPIServer(config *operatorv1alpha1.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	errs := auditWebhook(config.AuditWebhook, path.Child("auditWebhook"))
	if config.Authentication != nil && config.Authentication.Webhook != nil {
		webhook, path := config.Authentication.Webhook, path.Child("authentication", "webhook")
		errs = append(errs, required(webhook.KubeconfigSecretName, path.Child("kubeconfigSecretName"))...)
		if webhook.CacheTTL != nil {
			errs = append(errs, notNegative(*webhook.CacheTTL, path.Child("cacheTTL"))...)
		}
	}

	seen := sets.New[string]()
	for i, resource := range config.ResourcesToStoreInETCDEvents {
		path := path.Child("resourcesToStoreInETCDEvents").Index(i)
		errs = append(errs, required(resource.Resource, path.Child("resource"))...)
		id := resource.Resource + "." + resource.Group
		switch {
		case resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io"):
			errs = append(errs, field.Forbidden(path, "events are stored there anyway"))
		case resource.Resource == "secrets" && resource.Group == "":
			errs = append(errs, field.Forbidden(path, "secrets must be backed up"))
		case seen.Has(id):
			errs = append(errs, field.Duplicate(path, id))
		}
		seen.Insert(id)
	}
	return append(errs, stored(config.EncryptionConfig, false, path.Child("encryptionConfig"))...)
}

// maxHosts is how many names a TLSRoute can have. That of the kube-apiserver has two for each domain, and those of sni.
const maxHosts = 16

// sni checks the names for which the kube-apiserver has another certificate. Domains are those of the virtual cluster.
func sni(config *operatorv1alpha1.SNI, domains []operatorv1alpha1.DNSDomain, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if config.SecretName != nil {
		errs = append(errs, required(*config.SecretName, path.Child("secretName"))...)
	}
	path = path.Child("domainPatterns")
	if len(config.DomainPatterns) == 0 {
		errs = append(errs, field.Required(path, "must have at least one pattern"))
	}
	if rest := max(0, maxHosts-2*len(domains)); len(config.DomainPatterns) > rest {
		errs = append(errs, field.TooMany(path, len(config.DomainPatterns), rest))
	}
	seen := sets.New[string]()
	for i, pattern := range config.DomainPatterns {
		path := path.Index(i)
		if len(validation.IsDNS1123Subdomain(pattern)) > 0 && len(validation.IsWildcardDNS1123Subdomain(pattern)) > 0 {
			errs = append(errs, field.Invalid(path, pattern, "must be a domain in lower case, or one that starts with *."))
			continue
		}
		if net.ParseIP(pattern) != nil {
			errs = append(errs, field.Invalid(path, pattern, "must not be an IP address: clients send names only"))
		}
		if len(domains) > 0 && operatorv1alpha1.MatchesDomainPattern(pattern, "api."+domains[0].Name) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("must not match api.%s: gardenlets trust only the CA of the garden there", domains[0].Name)))
		}
		errs = append(errs, unique(seen, pattern, path)...)
	}
	return errs
}

// stored checks that encrypted resources are those of the server: the gardener-apiserver stores its own, the kube-apiserver all
// others.
func stored(config *corev1beta1.EncryptionConfig, gardener bool, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	for i, resource := range config.Resources {
		path := path.Child("resources").Index(i)
		_, group, _ := strings.Cut(resource, ".")
		ours := slices.Contains(gardenerGroups, group)
		switch {
		case resource == "":
			errs = append(errs, field.Required(path, "must be set"))
		case slices.Contains(alwaysEncrypted, resource):
			errs = append(errs, field.Forbidden(path, "is always encrypted"))
		case resource == "events" || resource == "events.events.k8s.io":
			errs = append(errs, field.Forbidden(path, "events cannot be encrypted"))
		case ours && !gardener:
			errs = append(errs, field.Invalid(path, resource, "is stored by the gardener-apiserver: put it in its configuration"))
		case !ours && gardener:
			errs = append(errs, field.Invalid(path, resource, "is stored by the kube-apiserver: put it in its configuration"))
		}
	}
	return errs
}

func auditWebhook(webhook *operatorv1alpha1.AuditWebhook, path *field.Path) field.ErrorList {
	if webhook == nil {
		return nil
	}
	errs := required(webhook.KubeconfigSecretName, path.Child("kubeconfigSecretName"))
	if webhook.BatchMaxSize != nil && *webhook.BatchMaxSize < 1 {
		errs = append(errs, field.Invalid(path.Child("batchMaxSize"), *webhook.BatchMaxSize, "must be at least 1"))
	}
	return errs
}

func notNegative(duration metav1.Duration, path *field.Path) field.ErrorList {
	if duration.Duration < 0 {
		return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must not be negative")}
	}
	return nil
}

func gardener(virtual *operatorv1alpha1.VirtualCluster, providers sets.Set[string], path *field.Path) field.ErrorList {
	config := &virtual.Gardener
	errs := required(config.ClusterIdentity, path.Child("clusterIdentity"))
	if apiServer := config.GardenerAPIServer; apiServer != nil {
		errs = append(errs, gardenerAPIServer(apiServer, path.Child("gardenerAPIServer"))...)
	}
	if admission := config.GardenerAdmissionController; admission != nil && admission.ResourceAdmissionConfiguration != nil {
		errs = append(errs, resourceAdmission(admission.ResourceAdmissionConfiguration, path.Child("gardenerAdmissionController", "resourceAdmissionConfiguration"))...)
	}
	if manager := config.GardenerControllerManager; manager != nil {
		errs = append(errs, cidr.Validate(cidr.List(path.Child("gardenerControllerManager", "plantAllowCIDRs"), manager.PlantAllowCIDRs)...)...)
		for i, quota := range manager.DefaultProjectQuotas {
			path := path.Child("gardenerControllerManager", "defaultProjectQuotas").Index(i)
			if len(quota.Config.Spec.Hard) == 0 {
				errs = append(errs, field.Required(path.Child("config", "spec", "hard"), "must have at least one limit"))
			}
			errs = append(errs, metav1validation.ValidateLabelSelector(quota.ProjectSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("projectSelector"))...)
		}
	}
	if config.GardenerDashboard != nil {
		path := path.Child("gardenerDashboard")
		errs = append(errs, dashboard(config.GardenerDashboard, providers, path)...)
		apiServer := virtual.Kubernetes.KubeAPIServer
		if config.GardenerDashboard.OIDCConfig != nil && (apiServer == nil || apiServer.StructuredAuthentication == nil) {
			errs = append(errs, field.Invalid(path.Child("oidcConfig"), "", "needs spec.virtualCluster.kubernetes.kubeAPIServer.structuredAuthentication: kube-apiserver would refuse the tokens"))
		}
	}
	if discovery := config.GardenerDiscoveryServer; discovery != nil {
		errs = append(errs, domain(discovery.Domain, providers, path.Child("gardenerDiscoveryServer", "domain"))...)
	}
	if manager := config.GardenerResourceManager; manager != nil {
		seen := sets.New[string]()
		for i, namespace := range manager.AdditionalTargetNamespaces {
			path := path.Child("gardenerResourceManager", "additionalTargetNamespaces").Index(i)
			for _, message := range validation.IsDNS1123Label(namespace) {
				errs = append(errs, field.Invalid(path, namespace, message))
			}
			errs = append(errs, unique(seen, namespace, path)...)
		}
	}
	return errs
}

func gardenerAPIServer(config *operatorv1alpha1.GardenerAPIServerConfig, path *field.Path) field.ErrorList {
	errs := auditWebhook(config.AuditWebhook, path.Child("auditWebhook"))
	errs = append(errs, core.EncryptionConfig(config.EncryptionConfig, path.Child("encryptionConfig"))...)
	errs = append(errs, stored(config.EncryptionConfig, true, path.Child("encryptionConfig"))...)
	seen := sets.New[string]()
	for i, plugin := range config.AdmissionPlugins {
		path := path.Child("admissionPlugins").Index(i).Child("name")
		errs = append(errs, required(plugin.Name, path)...)
		errs = append(errs, unique(seen, plugin.Name, path)...)
	}
	if chance := config.GoAwayChance; chance != nil && !(*chance >= 0 && *chance <= 0.02) { // false for NaN
		errs = append(errs, field.Invalid(path.Child("goAwayChance"), *chance, "must be between 0 and 0.02"))
	}
	if expiration := config.ShootAdminKubeconfigMaxExpiration; expiration != nil && expiration.Duration < time.Hour {
		errs = append(errs, field.Invalid(path.Child("shootAdminKubeconfigMaxExpiration"), expiration.Duration.String(), "must be at least 1h"))
	}
	if requests := config.Requests; requests != nil {
		for _, limit := range []struct {
			name  string
			value *int32
		}{{"maxNonMutatingInflight", requests.MaxNonMutatingInflight}, {"maxMutatingInflight", requests.MaxMutatingInflight}} {
			if limit.value != nil && *limit.value < 0 {
				errs = append(errs, field.Invalid(path.Child("requests", limit.name), *limit.value, "must not be negative"))
			}
		}
	}
	return errs
}

func resourceAdmission(config *operatorv1alpha1.ResourceAdmissionConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, limit := range config.Limits {
		path := path.Child("limits").Index(i)
		if len(limit.APIGroups) == 0 {
			errs = append(errs, field.Required(path.Child("apiGroups"), "must have at least one group"))
		}
		if len(limit.APIVersions) == 0 {
			errs = append(errs, field.Required(path.Child("apiVersions"), "must have at least one version"))
		}
		if len(limit.Resources) == 0 {
			errs = append(errs, field.Required(path.Child("resources"), "must have at least one resource"))
		}
		switch {
		case limit.Size == nil && limit.Count == nil:
			errs = append(errs, field.Required(path, "must have a size or a count"))
		case limit.Size != nil && limit.Size.Sign() < 0:
			errs = append(errs, field.Invalid(path.Child("size"), limit.Size.String(), "must not be negative"))
		}
		if limit.Count != nil && *limit.Count < 0 {
			errs = append(errs, field.Invalid(path.Child("count"), *limit.Count, "must not be negative"))
		}
	}
	return errs
}

func dashboard(config *operatorv1alpha1.GardenerDashboardConfig, providers sets.Set[string], path *field.Path) field.ErrorList {
	errs := domain(config.Domain, providers, path.Child("domain"))
	if config.EnableTokenLogin != nil && !*config.EnableTokenLogin && config.OIDCConfig == nil {
		errs = append(errs, field.Invalid(path.Child("enableTokenLogin"), false, "must not be false without oidcConfig: users could not log in"))
	}
	if oidc := config.OIDCConfig; oidc != nil {
		path := path.Child("oidcConfig")
		errs = append(errs, required(oidc.SecretRef.Name, path.Child("secretRef", "name"))...)
		if oidc.IssuerURL != nil {
			if parsed, err := url.Parse(*oidc.IssuerURL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
				errs = append(errs, field.Invalid(path.Child("issuerURL"), *oidc.IssuerURL, "must be a URL with scheme https"))
			}
		}
		if oidc.SessionLifetime != nil {
			errs = append(errs, notNegative(*oidc.SessionLifetime, path.Child("sessionLifetime"))...)
		}
	}
	if gitHub := config.GitHub; gitHub != nil {
		path := path.Child("gitHub")
		errs = append(errs, required(gitHub.SecretRef.Name, path.Child("secretRef", "name"))...)
		if gitHub.PollInterval != nil {
			errs = append(errs, notNegative(*gitHub.PollInterval, path.Child("pollInterval"))...)
		}
	}
	if terminal := config.Terminal; terminal != nil {
		errs = append(errs, required(terminal.Container.Image, path.Child("terminal", "container", "image"))...)
	}
	return errs
}
