package care

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// patience is for how many seconds a request for something critical may wait for a webhook: programs of the control plane give up after
	// 30 seconds, and there may be more than one webhook.
	patience int32 = 15
	// leasePatience is the same for leases by which programs of the control plane lead: they lose them after ten seconds.
	leasePatience int32 = 3
	// defaultTimeout is for how many seconds an API server waits if a webhook does not say.
	defaultTimeout int32 = 10
)

// critical is a kind of objects without which a cluster does not wake up, or nodes do not join.
type critical struct {
	group, resource string
	// namespaces are where objects of the kind are critical. Objects of a kind without are in none.
	namespaces []string
	// managed is whether the critical objects are those that Gardener has written. Others have labels that nobody knows.
	managed  bool
	patience int32
}

var (
	system         = []string{metav1.NamespaceSystem}
	criticalThings = []critical{
		{"", "configmaps", system, true, patience},
		{"", "endpoints", append(system, metav1.NamespaceDefault), false, patience},
		{"", "namespaces", nil, false, patience},
		{"", "nodes", nil, false, patience},
		{"", "nodes/status", nil, false, patience},
		{"", "pods", system, true, patience},
		{"", "pods/status", system, true, patience},
		{"", "secrets", system, true, patience},
		{"", "serviceaccounts", system, true, patience},
		{"", "services", system, true, patience},
		{"apiextensions.k8s.io", "customresourcedefinitions", nil, true, patience},
		{"apiregistration.k8s.io", "apiservices", nil, true, patience},
		{"apps", "controllerrevisions", system, true, patience},
		{"apps", "daemonsets", system, true, patience},
		{"apps", "daemonsets/status", system, true, patience},
		{"apps", "deployments", system, true, patience},
		{"apps", "deployments/scale", system, true, patience},
		{"apps", "replicasets", system, true, patience},
		{"apps", "replicasets/scale", system, true, patience},
		{"apps", "statefulsets", system, true, patience},
		{"certificates.k8s.io", "certificatesigningrequests", nil, false, patience},
		{"certificates.k8s.io", "certificatesigningrequests/approval", nil, false, patience},
		{"certificates.k8s.io", "certificatesigningrequests/status", nil, false, patience},
		{"coordination.k8s.io", "leases", []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease}, false, leasePatience},
		{"discovery.k8s.io", "endpointslices", append(system, metav1.NamespaceDefault), false, patience},
		{"networking.k8s.io", "networkpolicies", system, true, patience},
		{"policy", "poddisruptionbudgets", system, true, patience},
		{"rbac.authorization.k8s.io", "clusterrolebindings", nil, true, patience},
		{"rbac.authorization.k8s.io", "clusterroles", nil, true, patience},
		{"rbac.authorization.k8s.io", "rolebindings", system, true, patience},
		{"rbac.authorization.k8s.io", "roles", system, true, patience},
		{"scheduling.k8s.io", "priorityclasses", nil, true, patience},
	}
	// managedLabels are those that objects have which Gardener has written.
	managedLabels = labels.Set{resourcesv1alpha1.ManagedBy: "gardener", constants.ShootNoCleanup: "true"}
)

// webhook is what both kinds of webhooks have in common. Its fields may be changed.
type webhook struct {
	name                      string
	rules                     []admissionregistrationv1.RuleWithOperations
	failurePolicy             **admissionregistrationv1.FailurePolicyType
	timeoutSeconds            **int32
	namespaceSelector, object *metav1.LabelSelector
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

// ours is whether a configuration is one that Gardener has written: its webhooks are in the seed, and work when no node does.
func ours(o client.Object) bool {
	l := o.GetLabels()
	return l[resourcesv1alpha1.ManagedBy] == "gardener" || l[constants.ShootNoCleanup] == "true"
}

// vouched is whether the owner of a configuration has said that it is not in the way.
func vouched(o client.Object) bool {
	return o.GetLabels()[constants.ExcludeWebhookFromRemediation] == "true"
}

// problems says which webhooks of a configuration are in the way of a cluster that wakes up, or whose nodes are replaced.
func problems(kind, name string, webhooks []webhook) []string {
	var list []string
	for _, w := range webhooks {
		if why := w.problem(); why != "" {
			list = append(list, fmt.Sprintf("%s %q: webhook %q %s", kind, name, w.name, why))
		}
	}
	return list
}

// problem says why a webhook is in the way, or nothing.
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

// matches returns something critical that does not happen when the webhook does not answer, and something that happens too late.
func (w *webhook) matches() (fail, slow string) {
	for _, c := range criticalThings {
		if !slices.ContainsFunc(w.rules, c.matchedBy) || !w.selects(&c) {
			continue
		}
		what := c.resource
		if c.group != "" {
			what += "." + c.group
		}
		if fail == "" && (*w.failurePolicy == nil || **w.failurePolicy == admissionregistrationv1.Fail) {
			fail = what
		}
		if slow == "" && w.timeout() > c.patience {
			slow = what
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

// remediate changes a webhook so that it is no longer in the way. It reports whether it had to.
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

// limit is for how many seconds a webhook may make others wait. It is zero if it decides about nothing critical.
func (w *webhook) limit() int32 {
	limit := int32(0)
	for _, c := range criticalThings {
		if slices.ContainsFunc(w.rules, c.matchedBy) && w.selects(&c) && (limit == 0 || c.patience < limit) {
			limit = c.patience
		}
	}
	return limit
}

// matchedBy is whether a rule is about the creation or change of critical objects. Versions do not count: the API server also sends
// what is equivalent.
func (c *critical) matchedBy(rule admissionregistrationv1.RuleWithOperations) bool {
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

// selects is whether the selectors of a webhook let critical objects through to it.
func (w *webhook) selects(c *critical) bool {
	object := labels.Set{}
	if c.managed {
		object = managedLabels
	}
	if !selected(w.object, object) {
		return false
	}
	if c.namespaces == nil && c.resource != "namespaces" { // what is in no namespace is never left out
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

// selected is whether a selector selects labels. One that cannot be read selects all, as then nobody knows.
func selected(selector *metav1.LabelSelector, set labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(set)
}
