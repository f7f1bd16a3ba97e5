package apiserverconfig

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	"k8s.io/apiserver/pkg/audit"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/pkg/destination"
)

// authenticationV1 is since when kube-apiservers know the final version, egressSelector since when that field.
var (
	authenticationV1 = version.MustParseGeneric("1.34")
	egressSelector   = version.MustParseGeneric("1.34")
)

// Compilers take a while to make, and schemes are not needed by every process.
var (
	claims     = sync.OnceValue(authenticationcel.NewDefaultCompiler)
	conditions = sync.OnceValue(authorizationcel.NewDefaultCompiler)
	decoder    = sync.OnceValue(func() runtime.Decoder {
		scheme := runtime.NewScheme()
		install.Install(scheme)
		return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	})
	auditDecoder = sync.OnceValue(func() runtime.Decoder {
		return serializer.NewCodecFactory(audit.Scheme, serializer.EnableStrict).UniversalDecoder()
	})
)

// AuditPolicy checks the Policy of audit.k8s.io/v1 that says what a kube-apiserver logs. More strictly than there, it must have no unknown
// fields: what is meant to be logged would not be, without a word.
func AuditPolicy(text string) field.ErrorList {
	policy := &auditapi.Policy{}
	if errs := decodeFile(auditDecoder(), text, policy, auditv1.SchemeGroupVersion.WithKind("Policy")); len(errs) > 0 {
		return errs
	}
	errs := auditvalidation.ValidatePolicy(policy)
	if len(policy.Rules) == 0 {
		errs = append(errs, field.Required(field.NewPath("rules"), "must have at least one entry"))
	}
	return errs
}

// Authentication checks the AuthenticationConfiguration of apiserver.config.k8s.io for a version of Kubernetes. issuers are those of tokens of
// service accounts, which the file must not have.
func Authentication(text string, kubernetes *version.Version, issuers []string) field.ErrorList {
	versions := []string{"v1beta1", "v1alpha1"}
	if !kubernetes.LessThan(authenticationV1) {
		versions = append([]string{"v1"}, versions...)
	}
	config := &apiserver.AuthenticationConfiguration{}
	if errs := decodeFile(decoder(), text, config, kinds("AuthenticationConfiguration", versions)...); len(errs) > 0 {
		return errs
	}
	errs := apiservervalidation.ValidateAuthenticationConfiguration(claims(), config, issuers)
	for i, jwt := range config.JWT {
		// An issuer in the network of the shoot is reached through the tunnel, whose agent only connects to that.
		if issuer := field.NewPath("jwt").Index(i).Child("issuer"); jwt.Issuer.EgressSelectorType != apiserver.EgressSelectorCluster {
			errs = append(errs, destination.URL(jwt.Issuer.URL, issuer.Child("url"))...)
			errs = append(errs, destination.URL(jwt.Issuer.DiscoveryURL, issuer.Child("discoveryURL"))...)
		}
		if jwt.Issuer.EgressSelectorType != "" && kubernetes.LessThan(egressSelector) {
			errs = append(errs, field.Forbidden(field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType"), "needs Kubernetes "+egressSelector.String()))
		}
	}
	return errs
}

// ConfiguresAnonymous reports whether a valid AuthenticationConfiguration says who may make requests without credentials. A kube-apiserver
// takes that from one place only.
func ConfiguresAnonymous(text string) bool {
	config := struct {
		Anonymous *struct{} `json:"anonymous"`
	}{}
	return yaml.Unmarshal([]byte(text), &config) == nil && config.Anonymous != nil
}

// SelectsEgress reports whether a valid AuthenticationConfiguration has an issuer that is reached through the tunnel into the network of the nodes. Without
// a tunnel, a kube-apiserver does not start with it.
func SelectsEgress(text string) bool {
	config := struct {
		JWT []struct {
			Issuer struct {
				EgressSelectorType string `json:"egressSelectorType"`
			} `json:"issuer"`
		} `json:"jwt"`
	}{}
	if yaml.Unmarshal([]byte(text), &config) != nil {
		return false
	}
	for _, jwt := range config.JWT {
		if jwt.Issuer.EgressSelectorType != "" {
			return true
		}
	}
	return false
}

// Names of the authorizers that every shoot may have. Those of users have other names.
const (
	AuthorizerNode       = "node"
	AuthorizerRBAC       = "rbac"
	AuthorizerNodeAgents = "node-agent-authorizer"
)

var reservedAuthorizers = []string{AuthorizerNode, AuthorizerRBAC, AuthorizerNodeAgents}

// Authorization checks the AuthorizationConfiguration of apiserver.config.k8s.io. All authorizers have to be webhooks, with the names of those
// for which there are kubeconfigs. These kubeconfigs say how they are reached, not the configuration.
func Authorization(text string, kubeconfigs []string) field.ErrorList {
	config := &apiserver.AuthorizationConfiguration{}
	if errs := decodeFile(decoder(), text, config, kinds("AuthorizationConfiguration", []string{"v1", "v1beta1", "v1alpha1"})...); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	for i, authorizer := range config.Authorizers {
		if authorizer.Webhook != nil {
			if authorizer.Webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
				errs = append(errs, field.Forbidden(field.NewPath("authorizers").Index(i).Child("webhook", "connectionInfo"), "must not be set, as the Shoot names a kubeconfig"))
			}
			authorizer.Webhook.ConnectionInfo = apiserver.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeInCluster}
		}
	}
	webhook := sets.New(string(apiserver.TypeWebhook))
	errs = append(errs, apiservervalidation.ValidateAuthorizationConfiguration(conditions(), nil, config, webhook, webhook)...)
	for i, authorizer := range config.Authorizers {
		path := field.NewPath("authorizers").Index(i).Child("name")
		switch {
		case authorizer.Name == "": // has an error already
		case slices.Contains(reservedAuthorizers, authorizer.Name):
			errs = append(errs, field.Invalid(path, authorizer.Name, "is the name of another authorizer"))
		case !slices.Contains(kubeconfigs, authorizer.Name):
			errs = append(errs, field.Invalid(path, authorizer.Name, "has no kubeconfig in the Shoot"))
		}
	}
	return errs
}

func kinds(kind string, versions []string) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, version := range versions {
		kinds = append(kinds, schema.GroupVersionKind{Group: configGroup, Version: version, Kind: kind})
	}
	return kinds
}

// decodeFile decodes a file of one of some kinds, with defaults.
func decodeFile(decoder runtime.Decoder, text string, into runtime.Object, allowed ...schema.GroupVersionKind) field.ErrorList {
	_, kind, err := decoder.Decode([]byte(text), nil, into)
	switch {
	case runtime.IsNotRegisteredError(err), kind != nil && !slices.Contains(allowed, *kind):
		var names []string
		for _, kind := range allowed {
			names = append(names, kind.Version)
		}
		return field.ErrorList{field.Forbidden(field.NewPath("kind"), "must be "+allowed[0].Kind+" of "+allowed[0].Group+" in version "+strings.Join(names, ", "))}
	case err == nil:
		return nil
	case runtime.IsMissingKind(err):
		return field.ErrorList{field.Required(field.NewPath("kind"), "must be "+allowed[0].Kind)}
	case runtime.IsMissingVersion(err):
		return field.ErrorList{field.Required(field.NewPath("apiVersion"), "must be "+allowed[0].GroupVersion().String())}
	}
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		var errs field.ErrorList
		for _, err := range strict.Errors() {
			errs = append(errs, field.Forbidden(field.NewPath(allowed[0].Kind), err.Error()))
		}
		return errs
	}
	return field.ErrorList{field.Forbidden(field.NewPath(allowed[0].Kind), "is no YAML of this kind")}
}
