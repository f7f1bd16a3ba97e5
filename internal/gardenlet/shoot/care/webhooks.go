package care

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// maxTimeout is the largest timeout of a webhook for a critical resource, in seconds: control plane components time out after 30 seconds,
	// and there may be more than one webhook.
	maxTimeout int32 = 15
	// maxLeaseTimeout is the same for leases, which control plane components lose after ten seconds.
	maxLeaseTimeout int32 = 3
	// defaultTimeout is the timeout of a webhook without one, in seconds.
	defaultTimeout int32 = 10
)

// criticalResource is a resource that a cluster needs to wake up, or that nodes need to join.
type criticalResource struct {
	group, resource string
	// namespaces are those in which objects of the resource are critical. It is empty for cluster-wide resources.
	namespaces []string
	// managed is whether only objects that Gardener has written are critical. The labels of other objects are unknown.
	managed bool
	// maxTimeout is the largest timeout of a webhook, in seconds.
	maxTimeout int32
}

var (
	system            = []string{metav1.NamespaceSystem}
	criticalResources = []criticalResource{
		{"", "configmaps", system, true, maxTimeout},
		{"", "endpoints", append(system, metav1.NamespaceDefault), false, maxTimeout},
		{"", "namespaces", nil, false, maxTimeout},
		{"", "nodes", nil, false, maxTimeout},
		{"", "nodes/status", nil, false, maxTimeout},
		{"", "pods", system, true, maxTimeout},
		{"", "pods/status", system, true, maxTimeout},
		{"", "secrets", system, true, maxTimeout},
		{"", "serviceaccounts", system, true, maxTimeout},
		{"", "services", system, true, maxTimeout},
		{"apiextensions.k8s.io", "customresourcedefinitions", nil, true, maxTimeout},
		{"apiregistration.k8s.io", "apiservices", nil, true, maxTimeout},
		{"apps", "controllerrevisions", system, true, maxTimeout},
		{"apps", "daemonsets", system, true, maxTimeout},
		{"apps", "daemonsets/status", system, true, maxTimeout},
		{"apps", "deployments", system, true, maxTimeout},
		{"apps", "deployments/scale", system, true, maxTimeout},
		{"apps", "replicasets", system, true, maxTimeout},
		{"apps", "replicasets/scale", system, true, maxTimeout},
		{"apps", "statefulsets", system, true, maxTimeout},
		{"certificates.k8s.io", "certificatesigningrequests", nil, false, maxTimeout},
		{"certificates.k8s.io", "certificatesigningrequests/approval", nil, false, maxTimeout},
		{"certificates.k8s.io", "certificatesigningrequests/status", nil, false, maxTimeout},
		{"coordination.k8s.io", "leases", []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}, false, maxLeaseTimeout},
		{"discovery.k8s.io", "endpointslices", append(system, metav1.NamespaceDefault), false, maxTimeout},
		{"networking.k8s.io", "networkpolicies", system, true, maxTimeout},
		{"policy", "poddisruptionbudgets", system, true, maxTimeout},
		{"rbac.authorization.k8s.io", "clusterrolebindings", nil, true, maxTimeout},
		{"rbac.authorization.k8s.io", "clusterroles", nil, true, maxTimeout},
		{"rbac.authorization.k8s.io", "rolebindings", system, true, maxTimeout},
		{"rbac.authorization.k8s.io", "roles", system, true, maxTimeout},
		{"scheduling.k8s.io", "priorityclasses", nil, true, maxTimeout},
	}
	// managedLabels are the labels of objects that Gardener has written.
	managedLabels = labels.Set{resourcesv1alpha1.ManagedBy: "gardener", constants.ShootNoCleanup: "true"}
)

// webhook has what both kinds of webhooks have in common. The pointers are to the fields of the configuration.
type webhook struct {
	name                              string
	rules                             []admissionregistrationv1.RuleWithOperations
	failurePolicy                     **admissionregistrationv1.FailurePolicyType
	timeoutSeconds                    **int32
	namespaceSelector, objectSelector *metav1.LabelSelector
}

func mutating(c *admissionregistrationv1.MutatingWebhookConfiguration) []webhook {
	list := make([]webhook, 0, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		list = append(list, webhook{w.Name, w.Rules, &w.FailurePolicy, &w.TimeoutSeconds, w.NamespaceSelector, w.ObjectSelector})
	}
	return list
}

func validating(c *admissionregistrationv1.ValidatingWebhookConfiguration) []webhook {
	list := make([]webhook, 0, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		list = append(list, webhook{w.Name, w.Rules, &w.FailurePolicy, &w.TimeoutSeconds, w.NamespaceSelector, w.ObjectSelector})
	}
	return list
}

// managedByGardener is whether Gardener has written a webhook configuration: its webhooks run in the seed and do not depend on nodes.
func managedByGardener(o client.Object) bool {
	l := o.GetLabels()
	return l[resourcesv1alpha1.ManagedBy] == "gardener" || l[constants.ShootNoCleanup] == "true"
}

// excluded is whether the owner of a webhook configuration has excluded it from checks and remediation.
func excluded(o client.Object) bool {
	return o.GetLabels()[constants.ExcludeWebhookFromRemediation] == "true"
}

// problems returns which webhooks of a configuration may block the wake-up of a cluster, or new nodes.
func problems(kind, name string, webhooks []webhook) []string {
	var list []string
	for _, w := range webhooks {
		if why := w.problem(); why != "" {
			list = append(list, fmt.Sprintf("%s %q: webhook %q %s", kind, name, w.name, why))
		}
	}
	return list
}

// problem returns why a webhook may block operations, or an empty string.
func (w *webhook) problem() string {
	fail, slow := w.matches()
	switch {
	case fail != "":
		return fmt.Sprintf("decides about %s, and its failurePolicy is Fail", fail)
	case slow != "":
		return fmt.Sprintf("decides about %s, and may take %d seconds to do so", slow, w.timeout())
	}
	return ""
}

// matches returns a critical resource whose requests fail if the webhook does not respond, and one whose requests may time out.
func (w *webhook) matches() (fail, slow string) {
	for _, c := range criticalResources {
		if !slices.ContainsFunc(w.rules, c.matchedBy) || !w.selects(&c) {
			continue
		}
		name := schema.GroupResource{Group: c.group, Resource: c.resource}.String()
		if fail == "" && (*w.failurePolicy == nil || **w.failurePolicy == admissionregistrationv1.Fail) {
			fail = name
		}
		if slow == "" && w.timeout() > c.maxTimeout {
			slow = name
		}
	}
	return fail, slow
}

func (w *webhook) timeout() int32 {
	if t := *w.timeoutSeconds; t != nil {
		return *t
	}
	return defaultTimeout
}

// remediate changes a webhook so that it does not block operations. It reports whether anything has changed.
func (w *webhook) remediate() bool {
	limit := w.limit()
	if limit == 0 {
		return false
	}
	changed := false
	if *w.failurePolicy == nil || **w.failurePolicy == admissionregistrationv1.Fail {
		*w.failurePolicy, changed = new(admissionregistrationv1.Ignore), true
	}
	if w.timeout() > limit {
		*w.timeoutSeconds, changed = &limit, true
	}
	return changed
}

// limit is the largest timeout of the webhook, in seconds. It is zero if it matches no critical resource.
func (w *webhook) limit() int32 {
	limit := int32(0)
	for _, c := range criticalResources {
		if slices.ContainsFunc(w.rules, c.matchedBy) && w.selects(&c) && (limit == 0 || c.maxTimeout < limit) {
			limit = c.maxTimeout
		}
	}
	return limit
}

// matchedBy is whether a rule matches the creation or update of critical objects. Versions do not count: the API server also matches
// equivalent ones.
func (c *criticalResource) matchedBy(rule admissionregistrationv1.RuleWithOperations) bool {
	if !slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.Create || o == admissionregistrationv1.Update || o == admissionregistrationv1.OperationAll
	}) {
		return false
	}
	if scope := rule.Scope; scope != nil && *scope != admissionregistrationv1.AllScopes && (*scope == admissionregistrationv1.NamespacedScope) != (c.namespaces != nil) {
		return false
	}
	if !slices.Contains(rule.APIGroups, c.group) && !slices.Contains(rule.APIGroups, "*") {
		return false
	}
	resource, sub, isSub := strings.Cut(c.resource, "/")
	return slices.ContainsFunc(rule.Resources, func(r string) bool {
		switch r {
		case c.resource, "*/*":
			return true
		case "*":
			return !isSub
		}
		return isSub && (r == resource+"/*" || r == "*/"+sub)
	})
}

// selects is whether the selectors of a webhook select critical objects.
func (w *webhook) selects(c *criticalResource) bool {
	object := labels.Set{}
	if c.managed {
		object = managedLabels
	}
	if !selected(w.objectSelector, object) {
		return false
	}
	if c.namespaces == nil && c.resource != "namespaces" { // a namespaceSelector does not filter cluster-wide resources
		return true
	}
	namespaces := c.namespaces
	if c.resource == "namespaces" {
		namespaces = system // a Namespace is selected by its own labels
	}
	return slices.ContainsFunc(namespaces, func(name string) bool {
		return selected(w.namespaceSelector, labels.Set{
			corev1.LabelMetadataName: name, constants.GardenerPurpose: name, constants.ShootNoCleanup: "true",
		})
	})
}

// selected is whether a selector selects labels. An invalid one counts as one that does.
func selected(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(set)
}
