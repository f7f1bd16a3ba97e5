// Package configuration renders the webhook configurations of gardener-operator, which it applies itself.
package configuration

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// Name is the name of both configurations, and of the Service of the process.
const Name = "gardener-operator"

// Paths of the webhooks.
const (
	PathGardenDefaulting    = "/webhooks/default-operator-gardener-cloud-v1alpha1-garden"
	PathExtensionDefaulting = "/webhooks/default-operator-gardener-cloud-v1alpha1-extension"
	PathGardenValidation    = "/webhooks/validate-operator-gardener-cloud-v1alpha1-garden"
	PathExtensionValidation = "/webhooks/validate-operator-gardener-cloud-v1alpha1-extension"
	PathNamespaceDeletion   = "/webhooks/validate-core-v1-namespace"
	PathAuditPolicies       = "/webhooks/audit-policies"
)

const timeoutSeconds = 10

// Values are what the configurations depend on.
type Values struct {
	// Host is the host and port at which the API server reaches the process, if it runs outside of the cluster. If it is empty, the API server
	// uses the Service of the process.
	Host string
	// CABundle has the CA certificates of its server certificate.
	CABundle []byte
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
	remove = admissionregistrationv1.Delete
)

// webhook is one webhook, validating or mutating.
type webhook struct {
	name, path         string
	rules              []admissionregistrationv1.RuleWithOperations
	namespaces, labels *metav1.LabelSelector
	// only is a CEL expression for the requests that can be refused at all: others do not depend on the process.
	only string
}

// mutating are the webhooks that change objects.
func mutating() []webhook {
	return []webhook{
		{name: "garden-defaulting", path: PathGardenDefaulting, rules: operatorRule("gardens", create, update, remove)},
		{name: "extension-defaulting", path: PathExtensionDefaulting, rules: operatorRule("extensions", create, update)},
	}
}

// validating are the webhooks that refuse requests.
func validating() []webhook {
	garden := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: constants.GardenNamespace}}
	return []webhook{
		{name: "garden-validation", path: PathGardenValidation, rules: operatorRule("gardens", create, update, remove)},
		{name: "extension-validation", path: PathExtensionValidation, rules: operatorRule("extensions", create, update, remove)},
		{name: "namespace-deletion-validation", path: PathNamespaceDeletion, labels: garden, rules: rule("", "v1", "namespaces", remove)},
		{
			name: "audit-policies", path: PathAuditPolicies, namespaces: garden,
			rules: append(operatorRule("gardens", create, update), rule("", "v1", "configmaps", update)...),
			only: "request.resource.resource != 'configmaps' || has(object.data) && 'policy' in object.data || " +
				"has(oldObject.data) && 'policy' in oldObject.data",
		},
	}
}

// Objects renders the configurations.
func Objects(v Values) []client.Object {
	mutatingConfiguration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	for _, w := range mutating() {
		mutatingConfiguration.Webhooks = append(mutatingConfiguration.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: w.fullName(), ClientConfig: v.client(w.path), Rules: w.rules, NamespaceSelector: w.namespaces, ObjectSelector: w.labels,
			MatchConditions: w.conditions(), AdmissionReviewVersions: reviews(), TimeoutSeconds: new(int32(timeoutSeconds)),
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			MatchPolicy: new(admissionregistrationv1.Exact),
		})
	}
	validatingConfiguration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	for _, w := range validating() {
		validatingConfiguration.Webhooks = append(validatingConfiguration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: w.fullName(), ClientConfig: v.client(w.path), Rules: w.rules, NamespaceSelector: w.namespaces, ObjectSelector: w.labels,
			MatchConditions: w.conditions(), AdmissionReviewVersions: reviews(), TimeoutSeconds: new(int32(timeoutSeconds)),
			FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			MatchPolicy: new(admissionregistrationv1.Exact),
		})
	}
	return []client.Object{mutatingConfiguration, validatingConfiguration}
}

func (w webhook) fullName() string { return w.name + "." + operatorv1alpha1.GroupName }

func (w webhook) conditions() []admissionregistrationv1.MatchCondition {
	if w.only == "" {
		return nil
	}
	return []admissionregistrationv1.MatchCondition{{Name: "concerned", Expression: w.only}}
}

func (v Values) client(path string) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: v.CABundle}
	if v.Host != "" {
		config.URL = new("https://" + strings.TrimSuffix(v.Host, "/") + path)
		return config
	}
	config.Service = &admissionregistrationv1.ServiceReference{Namespace: constants.GardenNamespace, Name: Name, Path: &path}
	return config
}

func reviews() []string { return []string{"v1", "v1beta1"} }

func operatorRule(resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return rule(operatorv1alpha1.GroupName, operatorv1alpha1.SchemeGroupVersion.Version, resource, operations...)
}

func rule(group, version, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}
