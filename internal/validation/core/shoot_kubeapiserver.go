package core

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/ordered"
	"gardener.cloud/gardener/pkg/destination"
)

const (
	// Upper bounds that protect the seed from the kube-apiserver of a shoot.
	maxEventTTL                = 24 * time.Hour
	maxNonMutatingInflight     = 5000
	maxMutatingInflight        = 2500
	minTokenExpiration         = 30 * 24 * time.Hour
	maxTokenExpiration         = 90 * 24 * time.Hour
	maxConfigMapNameLength     = 253
	structuredAuthorizationOff = "StructuredAuthorizationConfiguration"
)

func kubeAPIServer(config *corev1beta1.KubeAPIServerConfig, spec *corev1beta1.ShootSpec, version kubeVersion, path *field.Path) field.ErrorList {
	errs := featureGates(config.FeatureGates, version, path.Child("featureGates"))
	errs = append(errs, runtimeConfig(config.RuntimeConfig, version, spec.Workerless(), path.Child("runtimeConfig"))...)
	errs = append(errs, admissionPlugins(config.AdmissionPlugins, version, path.Child("admissionPlugins"))...)
	errs = append(errs, nonNegativeInt(config.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds"))...)
	errs = append(errs, nonNegativeInt(config.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds"))...)
	errs = append(errs, encryptionConfig(config.EncryptionConfig, path.Child("encryptionConfig"))...)
	errs = append(errs, within(config.EventTTL, 0, maxEventTTL, path.Child("eventTTL"))...)
	if requests := config.Requests; requests != nil {
		path := path.Child("requests")
		for _, r := range []struct {
			name    string
			value   *int32
			highest int32
		}{{"maxNonMutatingInflight", requests.MaxNonMutatingInflight, maxNonMutatingInflight}, {"maxMutatingInflight", requests.MaxMutatingInflight, maxMutatingInflight}} {
			if r.value != nil && (*r.value < 0 || *r.value > r.highest) {
				errs = append(errs, field.Invalid(path.Child(r.name), *r.value, "is out of bounds"))
			}
		}
	}
	if logging := config.Logging; logging != nil {
		errs = append(errs, nonNegativeInt(logging.Verbosity, path.Child("logging", "verbosity"))...)
		errs = append(errs, nonNegativeInt(logging.HTTPAccessVerbosity, path.Child("logging", "httpAccessVerbosity"))...)
	}
	for i, audience := range config.APIAudiences {
		path := path.Child("apiAudiences").Index(i)
		if slices.Contains(config.APIAudiences[:i], audience) {
			errs = append(errs, field.Duplicate(path, audience))
		}
		if strings.Contains(audience, ",") {
			errs = append(errs, field.Invalid(path, audience, "must not contain a comma"))
		}
	}
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil && audit.AuditPolicy.ConfigMapRef.Name == "" {
		errs = append(errs, field.Required(path.Child("auditConfig", "auditPolicy", "configMapRef", "name"), "must be set"))
	}
	if config.ServiceAccountConfig != nil {
		errs = append(errs, serviceAccountConfig(config.ServiceAccountConfig, path.Child("serviceAccountConfig"))...)
	}
	errs = append(errs, watchCacheSizes(config.WatchCacheSizes, version, path.Child("watchCacheSizes"))...)
	if config.EnableAnonymousAuthentication != nil && version.atLeast(1, 35) { //nolint:staticcheck // in use up to Kubernetes 1.34
		errs = append(errs, field.Forbidden(path.Child("enableAnonymousAuthentication"), "is not possible from Kubernetes 1.35; use structuredAuthentication"))
	}
	errs = append(errs, authentication(config, version, path)...)
	errs = append(errs, authorization(config, path)...)
	if config.TLSMinVersion != nil {
		errs = append(errs, supported(*config.TLSMinVersion, []string{"VersionTLS12", "VersionTLS13"}, path.Child("tlsMinVersion"))...)
	}
	return append(errs, controlPlaneAutoscaling(config.Autoscaling, "20m", "200M", path.Child("autoscaling"))...)
}

func encryptionConfig(config *corev1beta1.EncryptionConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if config.Provider.Type != nil {
		errs = append(errs, supported(*config.Provider.Type, []corev1beta1.EncryptionProviderType{
			corev1beta1.EncryptionProviderTypeAESCBC, corev1beta1.EncryptionProviderTypeAESGCM, corev1beta1.EncryptionProviderTypeSecretbox,
		}, path.Child("provider", "type"))...)
	}
	seen := sets.New[string]()
	for i, resource := range config.Resources {
		path := path.Child("resources").Index(i)
		name := strings.TrimSuffix(resource, ".")
		switch {
		case strings.HasPrefix(resource, "*."):
			errs = append(errs, field.Invalid(path, resource, "wildcards are not possible"))
		case slices.Contains(unencryptableResources, resource), strings.HasSuffix(resource, "."), strings.HasSuffix(resource, ".extensions"):
			errs = append(errs, field.Invalid(path, resource, "cannot be encrypted under this name"))
		}
		if name == "secrets" {
			errs = append(errs, field.Forbidden(path, "is always encrypted"))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(path, resource))
		}
		seen.Insert(name)
	}
	return errs
}

// unencryptableResources cannot be encrypted because of how the API server reads them.
var unencryptableResources = []string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}

// encryptedResources returns what is encrypted according to the spec, besides secrets.
func encryptedResources(spec *corev1beta1.ShootSpec) []string {
	if spec.Kubernetes.KubeAPIServer == nil || spec.Kubernetes.KubeAPIServer.EncryptionConfig == nil {
		return nil
	}
	return spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources
}

func serviceAccountConfig(config *corev1beta1.ServiceAccountConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if lifetime := config.MaxTokenExpiration; lifetime != nil {
		path := path.Child("maxTokenExpiration")
		switch {
		case lifetime.Duration < 0:
			errs = append(errs, field.Invalid(path, lifetime.Duration.String(), "must not be negative"))
		case lifetime.Duration != 0 && (lifetime.Duration < minTokenExpiration || lifetime.Duration > maxTokenExpiration):
			errs = append(errs, field.Forbidden(path, "must be between 30 and 90 days"))
		}
	}
	if config.Issuer != nil {
		errs = append(errs, issuerURL(*config.Issuer, path.Child("issuer"))...)
	}
	issuers := sets.New[string]()
	if config.Issuer != nil {
		issuers.Insert(*config.Issuer)
	}
	for i, issuer := range config.AcceptedIssuers {
		path := path.Child("acceptedIssuers").Index(i)
		if issuers.Has(issuer) {
			errs = append(errs, field.Duplicate(path, issuer))
		}
		issuers.Insert(issuer)
		errs = append(errs, issuerURL(issuer, path)...)
	}
	return errs
}

// issuerURL checks the issuer of tokens: an https URL without query and fragment, or any other string without a colon.
func issuerURL(issuer string, path *field.Path) field.ErrorList {
	if !strings.Contains(issuer, ":") && issuer != "" && len(issuer) <= 200 {
		return nil
	}
	parsed, err := url.Parse(issuer)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, issuer, err.Error())}
	case parsed.Scheme != "https":
		return field.ErrorList{field.Invalid(path, issuer, "must have the scheme https")}
	case parsed.Host == "", parsed.Fragment != "", parsed.RawQuery != "", parsed.User != nil:
		return field.ErrorList{field.Invalid(path, issuer, "must have a host, and neither user, query nor fragment")}
	}
	return nil
}

func watchCacheSizes(sizes *corev1beta1.WatchCacheSizes, version kubeVersion, path *field.Path) field.ErrorList {
	if sizes == nil {
		return nil
	}
	var errs field.ErrorList
	if size := sizes.Default; size != nil { //nolint:staticcheck // in use up to Kubernetes 1.34
		if version.atLeast(1, 35) {
			errs = append(errs, field.Forbidden(path.Child("default"), "is not possible from Kubernetes 1.35"))
		} else {
			errs = append(errs, nonNegativeInt(size, path.Child("default"))...)
		}
	}
	for i, size := range sizes.Resources {
		path := path.Child("resources").Index(i)
		if size.APIGroup != nil {
			for _, msg := range validation.IsDNS1123Subdomain(*size.APIGroup) {
				errs = append(errs, field.Invalid(path.Child("apiGroup"), *size.APIGroup, msg))
			}
		}
		if size.Resource == "" {
			errs = append(errs, field.Required(path.Child("resource"), "must be set"))
		} else {
			for _, msg := range validation.IsDNS1123Label(size.Resource) {
				errs = append(errs, field.Invalid(path.Child("resource"), size.Resource, msg))
			}
		}
		errs = append(errs, nonNegativeInt(&size.CacheSize, path.Child("size"))...)
	}
	return errs
}

func authentication(config *corev1beta1.KubeAPIServerConfig, version kubeVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if structured := config.StructuredAuthentication; structured != nil {
		path := path.Child("structuredAuthentication")
		if gate, ok := config.FeatureGates["StructuredAuthenticationConfiguration"]; ok && !gate {
			errs = append(errs, field.Forbidden(path, "needs the feature gate StructuredAuthenticationConfiguration"))
		}
		if config.OIDCConfig != nil { //nolint:staticcheck // in use up to Kubernetes 1.31
			errs = append(errs, field.Forbidden(path, "is not possible together with oidcConfig"))
		}
		if structured.ConfigMapName == "" {
			errs = append(errs, field.Forbidden(path.Child("configMapName"), "must be set"))
		}
	}
	if oidc := config.OIDCConfig; oidc != nil { //nolint:staticcheck // as above
		path := path.Child("oidcConfig")
		if version.atLeast(1, 32) {
			return append(errs, field.Forbidden(path, "is not possible from Kubernetes 1.32; use structuredAuthentication"))
		}
		errs = append(errs, OIDCConfig(oidc, path)...)
	}
	return errs
}

// signingAlgorithms are the algorithms of signatures that ID tokens can have.
var signingAlgorithms = []string{"ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"}

// OIDCConfig checks the OpenID Connect configuration of a kube-apiserver.
func OIDCConfig(config *corev1beta1.OIDCConfig, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (config.ClientID == nil) != (config.IssuerURL == nil) {
		if config.ClientID == nil {
			errs = append(errs, field.Required(path.Child("clientID"), "must be set with issuerURL"))
		} else {
			errs = append(errs, field.Required(path.Child("issuerURL"), "must be set with clientID"))
		}
	}
	if config.ClientID != nil && *config.ClientID == "" {
		errs = append(errs, field.Invalid(path.Child("clientID"), "", "must not be empty"))
	}
	if config.IssuerURL != nil {
		errs = append(errs, oidcIssuer(*config.IssuerURL, path.Child("issuerURL"))...)
		errs = append(errs, destination.URL(*config.IssuerURL, path.Child("issuerURL"))...)
	}
	for name, value := range ordered.Map(map[string]*string{
		"groupsClaim": config.GroupsClaim, "groupsPrefix": config.GroupsPrefix, "usernameClaim": config.UsernameClaim, "usernamePrefix": config.UsernamePrefix,
	}) {
		if value != nil && *value == "" {
			errs = append(errs, field.Invalid(path.Child(name), "", "must not be empty if it is set"))
		}
	}
	for i, algorithm := range config.SigningAlgs {
		errs = append(errs, supported(algorithm, signingAlgorithms, path.Child("signingAlgs").Index(i))...)
	}
	return append(errs, caBundle(config.CABundle, path.Child("caBundle"))...)
}

func oidcIssuer(issuer string, path *field.Path) field.ErrorList {
	if issuer == "" || !strings.HasPrefix(issuer, "https://") {
		return field.ErrorList{field.Invalid(path, issuer, "must be a URL with the scheme https")}
	}
	return issuerURL(issuer, path)
}

func authorization(config *corev1beta1.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	structured := config.StructuredAuthorization
	if structured == nil {
		return nil
	}
	path = path.Child("structuredAuthorization")
	var errs field.ErrorList
	if gate, ok := config.FeatureGates[structuredAuthorizationOff]; ok && !gate {
		errs = append(errs, field.Forbidden(path, "needs the feature gate "+structuredAuthorizationOff))
	}
	if structured.ConfigMapName == "" {
		errs = append(errs, field.Forbidden(path.Child("configMapName"), "must be set"))
	}
	if len(structured.Kubeconfigs) == 0 {
		errs = append(errs, field.Required(path.Child("kubeconfigs"), "must have at least one entry"))
	}
	return errs
}
