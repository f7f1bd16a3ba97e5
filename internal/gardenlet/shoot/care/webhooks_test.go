package care

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// about is a rule for some resources of a group.
func about(group string, operation admissionregistrationv1.OperationType, resources ...string) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
	}
}

func TestWebhooks(t *testing.T) {
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	notIn := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}}}
	}
	pods := about("", admissionregistrationv1.Create, "pods")
	for name, tc := range map[string]struct {
		webhook admissionregistrationv1.ValidatingWebhook
		problem string
		// after is what the webhook is like when it was remediated, as policy and timeout.
		after   *admissionregistrationv1.FailurePolicyType
		timeout *int32
	}{
		"pods of the system": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{pods}, FailurePolicy: new(fail)},
			problem: "decides about pods, and its failurePolicy is Fail", after: new(ignore),
		},
		"the default is to fail": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{pods}},
			problem: "decides about pods, and its failurePolicy is Fail", after: new(ignore),
		},
		"all there is": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{about("*", admissionregistrationv1.OperationAll, "*/*")}, TimeoutSeconds: new(int32(30))},
			problem: "decides about configmaps, and its failurePolicy is Fail", after: new(ignore), timeout: new(int32(3)),
		},
		"not in kube-system": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules: []admissionregistrationv1.RuleWithOperations{pods}, NamespaceSelector: notIn("kubernetes.io/metadata.name", "kube-system"),
			},
		},
		"not what Gardener writes": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules: []admissionregistrationv1.RuleWithOperations{pods}, ObjectSelector: notIn("shoot.gardener.cloud/no-cleanup", "true"),
			},
		},
		"nodes are in no namespace": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules:             []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Update, "nodes")},
				NamespaceSelector: notIn("kubernetes.io/metadata.name", "kube-system"),
			},
			problem: "decides about nodes, and its failurePolicy is Fail", after: new(ignore),
		},
		"only deletions": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Delete, "pods")}},
		},
		"something of users": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{about("example.com", admissionregistrationv1.Create, "*")}},
		},
		"fails open, and late": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules: []admissionregistrationv1.RuleWithOperations{pods}, FailurePolicy: new(ignore), TimeoutSeconds: new(int32(30)),
			},
			problem: "decides about pods, and may take 30 seconds to do so", after: new(ignore), timeout: new(int32(15)),
		},
		"fails open, and soon": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules: []admissionregistrationv1.RuleWithOperations{pods}, FailurePolicy: new(ignore), TimeoutSeconds: new(int32(15)),
			},
			after: new(ignore), timeout: new(int32(15)),
		},
		"leases do not wait": {
			webhook: admissionregistrationv1.ValidatingWebhook{
				Rules: []admissionregistrationv1.RuleWithOperations{about("coordination.k8s.io", admissionregistrationv1.Update, "leases")}, FailurePolicy: new(ignore),
			},
			problem: "decides about leases.coordination.k8s.io, and may take 10 seconds to do so", after: new(ignore), timeout: new(int32(3)),
		},
		"subresources by their name": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Update, "*/status")}},
			problem: "decides about nodes/status, and its failurePolicy is Fail", after: new(ignore),
		},
		"not of this scope": {
			webhook: admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: pods.Operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, Resources: []string{"*"}, Scope: new(admissionregistrationv1.ClusterScope)},
			}}, NamespaceSelector: notIn("kubernetes.io/metadata.name", "kube-system")},
			problem: "decides about nodes, and its failurePolicy is Fail", after: new(ignore),
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{tc.webhook}}
			w := &validating(config)[0]
			if got := w.problem(); got != tc.problem {
				t.Errorf("problem() is %q, want %q", got, tc.problem)
			}
			if changed := w.remediate(); changed != (tc.problem != "") {
				t.Errorf("remediate() changed something: %t", changed)
			}
			if tc.problem == "" {
				if diff := cmp.Diff(tc.webhook, config.Webhooks[0]); diff != "" {
					t.Errorf("remediate() changed a webhook that is fine (-want +got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff([]any{tc.after, tc.timeout}, []any{config.Webhooks[0].FailurePolicy, config.Webhooks[0].TimeoutSeconds}); diff != "" {
				t.Errorf("policy and timeout after remediate() (-want +got):\n%s", diff)
			}
			if got := w.problem(); got != "" {
				t.Errorf("after remediate(), problem() is %q", got)
			}
		})
	}
}
