package gardeneradmissioncontroller

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/restriction"
)

// Endpoint is where the API server of the garden reaches the webhooks.
type Endpoint struct {
	// Namespace is that of the Service, if the admission controller runs in the garden cluster.
	Namespace string
	// URL is that of the server, without a path, if it runs elsewhere.
	URL string
	// CABundle has the CA certificates of its server certificate.
	CABundle []byte
}

// Webhooks renders the webhook configurations for the garden cluster. limits may be nil.
func Webhooks(e Endpoint, limits *admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration) []client.Object {
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Name}, Webhooks: e.mutating()},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Name}, Webhooks: e.validating(limits)},
	}
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
	remove = admissionregistrationv1.Delete
)

// API groups of the rules.
const (
	kubernetes = ""
	core       = "core.gardener.cloud"
)

const timeoutSeconds = 10

// webhook is one webhook, validating or mutating.
type webhook struct {
	name, path         string
	rules              []admissionregistrationv1.RuleWithOperations
	namespaces, labels *metav1.LabelSelector
	// only is a CEL expression for the requests that can be refused at all: others do not depend on the admission controller.
	only string
}

func projects() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{constants.GardenRole: constants.GardenRoleProject}}
}

// usersProjects are the namespaces of projects without that of Gardener itself.
func usersProjects() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: constants.GardenRole, Operator: metav1.LabelSelectorOpIn, Values: []string{constants.GardenRoleProject}},
		{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"gardener"}},
	}}
}

func (e Endpoint) mutating() []admissionregistrationv1.MutatingWebhook {
	w := webhook{
		name: "sync-provider-secret-labels", path: PathProviderLabels, namespaces: projects(),
		rules: []admissionregistrationv1.RuleWithOperations{
			rule(kubernetes, "v1", ops(create, update), "secrets"),
			rule(core, "v1beta1", ops(create, update), "internalsecrets"),
		},
	}
	return []admissionregistrationv1.MutatingWebhook{{
		Name: w.fullName(), ClientConfig: e.client(w.path), Rules: w.rules, NamespaceSelector: w.namespaces,
		AdmissionReviewVersions: reviews(), TimeoutSeconds: new(int32(timeoutSeconds)),
		FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}}
}

func (e Endpoint) validating(limits *admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration) []admissionregistrationv1.ValidatingWebhook {
	webhooks := append(objectWebhooks(), fileWebhooks()...)
	if limits != nil && len(limits.Limits) > 0 {
		webhooks = append(webhooks, webhook{name: "validate-resource-size", path: PathResourceSize, namespaces: usersProjects(), rules: limited(limits)})
	}
	webhooks = append(webhooks, restrictions()...)
	list := make([]admissionregistrationv1.ValidatingWebhook, 0, len(webhooks))
	for _, w := range webhooks {
		v := admissionregistrationv1.ValidatingWebhook{
			Name: w.fullName(), ClientConfig: e.client(w.path), Rules: w.rules, NamespaceSelector: w.namespaces, ObjectSelector: w.labels,
			AdmissionReviewVersions: reviews(), TimeoutSeconds: new(int32(timeoutSeconds)),
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			MatchPolicy: new(admissionregistrationv1.Equivalent),
		}
		if w.only != "" {
			v.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "concerned", Expression: w.only}}
		}
		list = append(list, v)
	}
	return list
}

// objectWebhooks are those for Namespaces, Secrets and ConfigMaps.
func objectWebhooks() []webhook {
	return []webhook{
		{
			name: "validate-namespace-deletion", path: PathNamespaceDeletion, namespaces: projects(),
			rules: []admissionregistrationv1.RuleWithOperations{rule(kubernetes, "v1", ops(remove), "namespaces")},
		},
		{
			name: "validate-kubeconfig-secrets", path: PathKubeconfigSecrets, namespaces: usersProjects(),
			rules: []admissionregistrationv1.RuleWithOperations{rule(kubernetes, "v1", ops(create, update), "secrets")},
			only:  "has(object.data) && 'kubeconfig' in object.data",
		},
		{
			name: "internal-domain-secret", path: PathInternalDomain,
			labels: &metav1.LabelSelector{MatchLabels: map[string]string{constants.GardenRole: constants.GardenRoleInternalDomain}},
			rules:  []admissionregistrationv1.RuleWithOperations{rule(kubernetes, "v1", ops(create, update, remove), "secrets")},
		},
		{
			name: "shoot-kubeconfig-secret-ref", path: PathKubeconfigReference, namespaces: projects(),
			rules: []admissionregistrationv1.RuleWithOperations{rule(kubernetes, "v1", ops(update), "secrets")},
			only:  "!has(object.data) || !('kubeconfig' in object.data) || object.data.kubeconfig.size() == 0",
		},
		{
			name: "update-restriction", path: PathUpdateRestriction,
			labels: &metav1.LabelSelector{MatchLabels: map[string]string{constants.UpdateRestriction: "true"}},
			rules:  []admissionregistrationv1.RuleWithOperations{rule(kubernetes, "v1", ops(create, update, remove), "secrets", "configmaps")},
		},
	}
}

// fileWebhooks are those for ConfigMaps with files of kube-apiservers, and for Shoots that refer to them.
func fileWebhooks() []webhook {
	file := func(name, path, section string) webhook {
		return webhook{
			name: name, path: path, namespaces: projects(),
			rules: []admissionregistrationv1.RuleWithOperations{
				rule(core, "v1beta1", ops(create, update), "shoots"),
				rule(kubernetes, "v1", ops(update), "configmaps"),
			},
			only: "request.resource.resource != 'shoots' || has(object.spec) && has(object.spec.kubernetes) && has(object.spec.kubernetes.kubeAPIServer) && " +
				"has(object.spec.kubernetes.kubeAPIServer." + section + ")",
		}
	}
	return []webhook{
		file("audit-policies", PathAuditPolicies, "auditConfig"),
		file("authentication-configuration", PathAuthenticationConfiguration, "structuredAuthentication"),
		file("authorization-configuration", PathAuthorizationConfiguration, "structuredAuthorization"),
	}
}

// restrictions are the webhooks that look at what gardenlets and extensions write, as the authorizers do not see it.
func restrictions() []webhook {
	return []webhook{
		{
			name: "seed-restriction", path: PathSeedRestriction, only: seedClients("request.userInfo.groups"),
			rules: restricted(restriction.SeedRules()),
		},
		{
			name: "shoot-restriction", path: PathShootRestriction, only: shootClients("request.userInfo.groups", "request.userInfo.username"),
			rules: restricted(restriction.ShootRules()),
		},
	}
}

// restricted returns the rules for requests that are decided on: one for the resources of a version with the same operations.
func restricted(rules []restriction.Rule) []admissionregistrationv1.RuleWithOperations {
	var list []admissionregistrationv1.RuleWithOperations
	for _, r := range rules {
		var operations []admissionregistrationv1.OperationType
		for _, operation := range r.Operations {
			operations = append(operations, admissionregistrationv1.OperationType(operation))
		}
		next := rule(r.Resource.Group, r.Resource.Version, operations, r.Resource.Resource)
		at := slices.IndexFunc(list, func(l admissionregistrationv1.RuleWithOperations) bool {
			return slices.Equal(l.APIGroups, next.APIGroups) && slices.Equal(l.APIVersions, next.APIVersions) && slices.Equal(l.Operations, next.Operations)
		})
		if at < 0 {
			list = append(list, next)
			continue
		}
		list[at].Resources = append(list[at].Resources, r.Resource.Resource)
	}
	return list
}

// limited returns the rules for resources with limits.
func limited(limits *admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration) []admissionregistrationv1.RuleWithOperations {
	var list []admissionregistrationv1.RuleWithOperations
	for _, limit := range limits.Limits {
		list = append(list, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{create, update},
			Rule:       admissionregistrationv1.Rule{APIGroups: limit.APIGroups, APIVersions: limit.APIVersions, Resources: limit.Resources},
		})
	}
	return list
}

func (w webhook) fullName() string { return w.name + ".gardener.cloud" }

func (e Endpoint) client(path string) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: e.CABundle}
	if e.URL != "" {
		config.URL = new(e.URL + path)
		return config
	}
	config.Service = &admissionregistrationv1.ServiceReference{Namespace: e.Namespace, Name: Name, Path: &path}
	return config
}

func reviews() []string { return []string{"v1", "v1beta1"} }

func rule(
	group, version string, operations []admissionregistrationv1.OperationType, resources ...string,
) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
	}
}

func ops(list ...admissionregistrationv1.OperationType) []admissionregistrationv1.OperationType {
	return list
}
