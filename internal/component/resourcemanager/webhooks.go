package resourcemanager

import (
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

// Paths of the webhooks.
const (
	PathDeletionProtection    = "/webhooks/validate-crd-deletion"
	PathEndpointSliceHints    = "/webhooks/endpoint-slice-hints"
	PathHighAvailability      = "/webhooks/high-availability-config"
	PathInvalidateToken       = "/webhooks/invalidate-service-account-token-secret" // a path
	PathKubernetesServiceHost = "/webhooks/kubernetes-service-host"
	PathLoadBalancing         = "/webhooks/pod-kube-apiserver-load-balancing"
	PathNodeAgentAuthorizer   = "/webhooks/auth/nodeagent"
	PathProjectedToken        = "/webhooks/mount-projected-service-account-token" // a path
	PathSchedulerName         = "/webhooks/default-pod-scheduler-name"
	PathSeccompProfile        = "/webhooks/seccomp-profile"
	PathSystemComponents      = "/webhooks/system-components-config"
	PathTopologySpread        = "/webhooks/pod-topology-spread-constraints"
	PathUpdateInPlace         = "/webhooks/vpa-in-place-updates"
	PathValidateEtcd          = "/validate-druid-gardener-cloud-v1alpha1-etcd"
)

// PathValidateExtension returns the path of the validation of a kind of extension, such as "worker".
func PathValidateExtension(kind string) string {
	return "/validate-extensions-gardener-cloud-v1alpha1-" + kind
}

// extensions are the kinds of extensions that are protected and validated, by resource.
var extensions = map[string]string{
	"backupbuckets": "backupbucket", "backupentries": "backupentry", "bastions": "bastion", "containerruntimes": "containerruntime",
	"controlplanes": "controlplane", "dnsrecords": "dnsrecord", "extensions": "extension", "infrastructures": "infrastructure",
	"networks": "network", "operatingsystemconfigs": "operatingsystemconfig", "selfhostedshootexposures": "selfhostedshootexposure",
	"workers": "worker",
}

const (
	// timeoutSeconds is the timeout of webhooks, and shortTimeoutSeconds that of those that may fail.
	timeoutSeconds, shortTimeoutSeconds = 10, 2

	labelNamespaceName = "kubernetes.io/metadata.name"
	labelStaticPod     = "static-pod"
)

// systemNamespaces are the namespaces of system components in a shoot.
var systemNamespaces = []string{metav1.NamespaceSystem, "kubernetes-dashboard"}

// Scope describes the API server that calls the webhooks.
type Scope struct {
	// Namespace is that of the Service, if the API server runs in the cluster that has it.
	Namespace string
	// URL is the URL of the webhook server for the API server of another cluster, such as https://gardener-resource-manager.shoot--a--b.
	URL string
	// Shoot says that it is the cluster of a shoot or the virtual garden, where all system components are in a few namespaces.
	Shoot bool
	// CABundle is the CA bundle with which the API server verifies the webhook server, as PEM.
	CABundle []byte
}

// Webhooks renders the webhook configurations for the webhooks that a configuration enables.
func Webhooks(c *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration, s Scope) []client.Object {
	var objects []client.Object
	name := Name
	if s.Shoot {
		name += "-shoot"
	}
	if webhooks := s.mutating(&c.Webhooks); len(webhooks) > 0 {
		objects = append(objects, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks})
	}
	if webhooks := s.validating(&c.Webhooks); len(webhooks) > 0 {
		objects = append(objects, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks})
	}
	return objects
}

func (s Scope) mutating(c *resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration) []admissionregistrationv1.MutatingWebhook {
	managed := map[string]string(nil)
	if s.Shoot {
		managed = map[string]string{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.GardenerManager}
	}
	notStatic := not(labelStaticPod, "true")
	notOwn := not("app", Name)
	var webhooks []admissionregistrationv1.MutatingWebhook
	add := func(enabled bool, name, path string, change func(*admissionregistrationv1.MutatingWebhook)) {
		if !enabled {
			return
		}
		w := admissionregistrationv1.MutatingWebhook{
			Name: name + ".resources.gardener.cloud", ClientConfig: s.client(path), Rules: pods(),
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Exact),
			TimeoutSeconds: new(int32(timeoutSeconds)),
		}
		change(&w)
		webhooks = append(webhooks, w)
	}
	add(c.ProjectedTokenMount.Enabled, "projected-token-mount", PathProjectedToken, func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector, w.ObjectSelector = s.namespaces(nil), selector(nil, absent(resourcesv1alpha1.ProjectedTokenSkip), notOwn, notStatic)
	})
	add(c.HighAvailabilityConfig.Enabled, "high-availability-config", PathHighAvailability, func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules = []admissionregistrationv1.RuleWithOperations{
			rule("apps", []string{"v1"}, createUpdate, "deployments", "statefulsets"),
			rule("autoscaling", []string{"v2"}, createUpdate, "horizontalpodautoscalers"),
		}
		w.MatchPolicy = new(admissionregistrationv1.Equivalent)
		w.NamespaceSelector = s.namespaces(map[string]string{resourcesv1alpha1.HighAvailabilityConfigConsider: "true"})
		w.ObjectSelector = selector(managed, absent(resourcesv1alpha1.HighAvailabilityConfigSkip))
	})
	add(c.PodSchedulerName.Enabled, "pod-scheduler-name", PathSchedulerName, func(w *admissionregistrationv1.MutatingWebhook) {
		w.FailurePolicy, w.ObjectSelector = new(admissionregistrationv1.Ignore), selector(nil, notStatic)
	})
	add(c.SeccompProfile.Enabled, "seccomp-profile", PathSeccompProfile, func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector, w.ObjectSelector = s.namespaces(nil), selector(nil, absent(resourcesv1alpha1.SeccompProfileSkip), notOwn, notStatic)
	})
	add(c.KubernetesServiceHost.Enabled, "kubernetes-service-host", PathKubernetesServiceHost, func(w *admissionregistrationv1.MutatingWebhook) {
		// Pods also work without it, with a longer network path.
		w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(shortTimeoutSeconds))
		w.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
		w.NamespaceSelector = selector(nil, not(resourcesv1alpha1.KubernetesServiceHostInject, "disable"))
		w.ObjectSelector = selector(nil, not(resourcesv1alpha1.KubernetesServiceHostInject, "disable"), notStatic)
	})
	add(c.PodKubeAPIServerLoadBalancing.Enabled, "pod-kube-apiserver-load-balancing", PathLoadBalancing, func(w *admissionregistrationv1.MutatingWebhook) {
		// Others have no ConfigMap that names a gateway. The resource managers of shoots are there, too, but not the one that serves the webhook.
		w.NamespaceSelector, w.ObjectSelector = selector(map[string]string{constants.GardenRole: constants.GardenRoleShoot}), selector(nil, notStatic)
		// Pods also work without it. While the feature gate is switched off, or after a rollback, nothing serves it.
		w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(shortTimeoutSeconds))
	})
	add(c.SystemComponentsConfig.Enabled, "system-components-config", PathSystemComponents, func(w *admissionregistrationv1.MutatingWebhook) {
		var consider map[string]string
		if !s.Shoot {
			consider = map[string]string{resourcesv1alpha1.SystemComponentsConfigConsider: "true"}
		}
		w.NamespaceSelector, w.ObjectSelector = s.namespaces(consider), selector(managed, absent(resourcesv1alpha1.SystemComponentsConfigSkip), notStatic)
	})
	add(c.PodTopologySpreadConstraints.Enabled, "pod-topology-spread-constraints", PathTopologySpread, func(w *admissionregistrationv1.MutatingWebhook) {
		w.NamespaceSelector = s.namespaces(nil)
		w.ObjectSelector = selector(managed, notOwn, absent(resourcesv1alpha1.PodTopologySpreadConstraintsSkip), notStatic)
	})
	add(c.TokenInvalidator.Enabled, "token-invalidator", PathInvalidateToken, func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules = []admissionregistrationv1.RuleWithOperations{rule("", []string{"v1"}, createUpdate, "secrets")}
		w.ObjectSelector = selector(map[string]string{resourcesv1alpha1.TokenInvalidatorConsider: "true"})
	})
	add(c.EndpointSliceHints.Enabled, "endpoint-slice-hints", PathEndpointSliceHints, func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules = []admissionregistrationv1.RuleWithOperations{rule("discovery.k8s.io", []string{"v1"}, createUpdate, "endpointslices")}
		w.NamespaceSelector = s.namespaces(nil)
		w.ObjectSelector = selector(map[string]string{resourcesv1alpha1.EndpointSliceHintsConsider: "true"})
		// Services also work without hints, and those of the webhooks themselves may have the label.
		w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(shortTimeoutSeconds))
	})
	add(c.VPAInPlaceUpdates.Enabled, "vpa-in-place-updates", PathUpdateInPlace, func(w *admissionregistrationv1.MutatingWebhook) {
		w.Rules = []admissionregistrationv1.RuleWithOperations{rule(workload.AutoscalerKind.Group, []string{workload.AutoscalerKind.Version}, createUpdate, "verticalpodautoscalers")}
		w.MatchPolicy, w.ReinvocationPolicy = new(admissionregistrationv1.Equivalent), new(admissionregistrationv1.NeverReinvocationPolicy)
		w.NamespaceSelector, w.ObjectSelector = s.namespaces(nil), selector(nil, absent(resourcesv1alpha1.VPAInPlaceUpdatesSkip))
		// Without it, pods are evicted. A former version, after a rollback, does not serve it.
		w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(shortTimeoutSeconds))
	})
	return webhooks
}

func (s Scope) validating(c *resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	webhook := func(
		name, path string, labels *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations,
	) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name + ".resources.gardener.cloud", ClientConfig: s.client(path), Rules: rules, ObjectSelector: labels,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Exact),
			TimeoutSeconds: new(int32(timeoutSeconds)),
		}
	}
	const extensionsGroup, druidGroup, etcds = "extensions.gardener.cloud", "druid.gardener.cloud", "etcds"
	version, resources := []string{"v1alpha1"}, slices.Sorted(maps.Keys(extensions))
	var webhooks []admissionregistrationv1.ValidatingWebhook
	if c.CRDDeletionProtection.Enabled {
		deletion := []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
		webhooks = append(webhooks,
			webhook("crd-deletion-protection", PathDeletionProtection, selector(map[string]string{constants.DeletionProtected: "true"}),
				rule("apiextensions.k8s.io", []string{"v1beta1", "v1"}, deletion, "customresourcedefinitions")),
			webhook("cr-deletion-protection", PathDeletionProtection, nil,
				rule(druidGroup, version, deletion, etcds), rule(extensionsGroup, version, deletion, resources...)))
	}
	if c.ExtensionValidation.Enabled {
		for _, resource := range resources {
			webhooks = append(webhooks, webhook("validation.extensions."+resource, PathValidateExtension(extensions[resource]), nil,
				rule(extensionsGroup, version, createUpdate, resource)))
		}
		webhooks = append(webhooks, webhook("validation.extensions."+etcds, PathValidateEtcd, nil, rule(druidGroup, version, createUpdate, etcds)))
	}
	return webhooks
}

func (s Scope) client(path string) admissionregistrationv1.WebhookClientConfig {
	if s.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: new(s.URL + path), CABundle: s.CABundle}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: s.CABundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: s.Namespace, Name: Name, Path: &path, Port: new(int32(servicePort)),
	}}
}

// namespaces selects the namespaces of components: in a shoot by name, elsewhere by their role.
func (s Scope) namespaces(labels map[string]string) *metav1.LabelSelector {
	if s.Shoot {
		return selector(labels, metav1.LabelSelectorRequirement{Key: labelNamespaceName, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(systemNamespaces)})
	}
	return selector(labels, metav1.LabelSelectorRequirement{Key: constants.GardenRole, Operator: metav1.LabelSelectorOpExists}, not(labelNamespaceName, systemNamespaces...))
}

var createUpdate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}

func pods() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{
		rule("", []string{"v1"}, []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, "pods"),
	}
}

func rule(group string, versions []string, operations []admissionregistrationv1.OperationType, resources ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: versions, Resources: resources},
	}
}

func selector(labels map[string]string, expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}
}

func absent(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
}

func not(key string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
}
