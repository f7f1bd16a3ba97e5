package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func TestNodeAgents(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const poolLabel, label = "worker.gardener.cloud/pool", "worker.gardener.cloud/gardener-node-agent-secret-name"
	machine := func(name string, labels map[string]string) *machinev1alpha1.Machine {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, Labels: labels}}
		m.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{poolLabel: "a", label: "gardener-node-agent-a-0123456789abcde1"}
		return m
	}
	node := func(name, secret string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: secret}}}
	}
	poolless := machine("m5", map[string]string{"node": "n5"})
	delete(poolless.Spec.NodeTemplate.ObjectMeta.Labels, poolLabel)
	own, other := certificatesv1.CertificateSigningRequest{}, certificatesv1.CertificateSigningRequest{}
	own.Name, own.Spec.Username, other.Name, other.Spec.Username = "own", "gardener.cloud:node-agent:machine:m1", "other", "other-user"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		machine("m1", map[string]string{"node": "n1"}), machine("new", nil), &own, &other, node("n1", "gardener-node-agent-a-0123456789abcde0"),
		// What these agents wrote on their Nodes.
		machine("m2", map[string]string{"node": "n2"}), node("n2", "other"),
		machine("m3", map[string]string{"node": "n3"}), node("n3", "gardener-node-agent-a-b"), // of the pool a-b
		machine("m4", map[string]string{"node": "n4"}), node("n4", "gardener-node-agent-a-"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: corev1.PodSpec{NodeName: "n1"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: corev1.PodSpec{NodeName: "n2"}},
		poolless, node("n5", "gardener-node-agent--x"),
	).Build()
	handler := &nodeAgents{source: c, machineNamespace: "shoot", target: c, targetAPI: c}
	for request, want := range map[string]bool{
		// agent verb group/resource namespace/name
		"m1 create certificates.k8s.io/certificatesigningrequests /":              true,
		"m1 get certificates.k8s.io/certificatesigningrequests /own":              true,
		"m1 get certificates.k8s.io/certificatesigningrequests /other":            false,
		"m1 get certificates.k8s.io/certificatesigningrequests /none":             false,
		"m1 list certificates.k8s.io/certificatesigningrequests /":                false,
		"m1 create /events default/":                                              true,
		"m1 patch /events default/e":                                              true,
		"m1 delete /events default/e":                                             false,
		"m1 get coordination.k8s.io/leases kube-system/gardener-node-agent-n1":    true,
		"m1 watch coordination.k8s.io/leases kube-system/gardener-node-agent-n1":  true,
		"m1 create coordination.k8s.io/leases kube-system/":                       true,
		"m1 update coordination.k8s.io/leases kube-system/gardener-node-agent-n2": false,
		"m1 list coordination.k8s.io/leases kube-system/":                         false,
		"m1 get coordination.k8s.io/leases default/gardener-node-agent-n1":        false,
		"m1 list /nodes /":                              true,
		"m1 get /nodes /n1":                             true,
		"m1 patch /nodes /n1":                           true,
		"m1 patch /nodes /n2":                           false,
		"m1 patch /nodes/status /n1":                    true,
		"m1 patch /nodes/status /n2":                    false,
		"m1 update /nodes/status /n1":                   false,
		"m1 create /serviceaccounts/token default/x":    false,
		"m1 watch /nodes /":                             false,
		"m1 delete /nodes /n1":                          false,
		"new get /nodes /n1":                            false,
		"m1 get /secrets kube-system/gardener-valitail": true,
		"m1 watch /secrets kube-system/gardener-node-agent-a-0123456789abcde0": true,
		"m1 get /secrets kube-system/gardener-node-agent-a-0123456789abcde1":   true,
		"new get /secrets kube-system/gardener-node-agent-a-0123456789abcde1":  true,
		"m1 get /secrets kube-system/other":                                    false,
		"m1 get /secrets kube-system/gardener-node-agent-a-older":              false,
		"m1 list /secrets kube-system/":                                        false,
		"m1 get /secrets default/gardener-node-agent-a-0123456789abcde0":       false,
		"m2 get /secrets kube-system/other":                                    false,
		"m2 get /secrets kube-system/gardener-node-agent-a-0123456789abcde1":   true,
		"m3 get /secrets kube-system/gardener-node-agent-a-b":                  false,
		"m4 get /secrets kube-system/gardener-node-agent-a-":                   false,
		"m5 get /secrets kube-system/gardener-node-agent--x":                   false,
		"m5 get /secrets kube-system/gardener-node-agent-a-0123456789abcde1":   true,
		"m1 delete /pods default/mine":                                         true,
		"m1 delete /pods default/other":                                        false,
		"m1 delete /pods default/none":                                         false,
		"m1 delete /pods default/":                                             false,
		"m1 create /pods default/":                                             false,
		"m1 list /pods /":                                                      false,
		"m1 list /pods of n1":                                                  true,
		"m1 list /pods of n2":                                                  false,
		"gone get /nodes /n1":                                                  false,
		"m1 get /configmaps kube-system/x":                                     false,
	} {
		t.Run(request, func(t *testing.T) {
			words := strings.Fields(request)
			group, resource, _ := strings.Cut(words[2], "/")
			resource, subresource, _ := strings.Cut(resource, "/")
			namespace, name, _ := strings.Cut(words[3], "/")
			var selector *authorizationv1.FieldSelectorAttributes
			if words[3] == "of" {
				namespace = ""
				selector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{words[4]}},
				}}
			}
			review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "gardener.cloud:node-agent:machine:" + words[0], Groups: []string{"gardener.cloud:node-agents"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: words[1], Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: name, FieldSelector: selector},
			}}
			if got := ask(t, handler, review); got.Status.Allowed != want || got.Status.Denied {
				t.Errorf("answer is %+v", got.Status)
			}
		})
	}
	for name, spec := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"another user":                   {User: "admin", Groups: []string{"gardener.cloud:node-agents"}},
		"a node agent without its group": {User: "gardener.cloud:node-agent:machine:m1"},
		"a path":                         {User: "gardener.cloud:node-agent:machine:m1", Groups: []string{"gardener.cloud:node-agents"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a path" {
				spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}
			}
			if got := ask(t, handler, authorizationv1.SubjectAccessReview{Spec: spec}); got.Status.Allowed {
				t.Errorf("answer is %+v", got.Status)
			}
		})
	}
}

func TestNodeAgentsNamedAfterTheirNodes(t *testing.T) {
	node := func(name, secret string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret},
		}}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := &nodeAgents{target: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		node("n1", "gardener-node-agent-a-0123456789abcde1"), node("n2", "other"),
	).Build()}
	for _, tc := range []struct {
		agent, secret string
		want          bool
	}{
		{"n1", "gardener-node-agent-a-0123456789abcde1", true}, {"n1", "gardener-node-agent-a-0123456789abcde0", false}, {"n2", "other", false},
	} {
		t.Run(tc.agent+" "+tc.secret, func(t *testing.T) {
			got := ask(t, handler, authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "gardener.cloud:node-agent:machine:" + tc.agent, Groups: []string{"gardener.cloud:node-agents"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: tc.secret},
			}})
			if got.Status.Allowed != tc.want {
				t.Errorf("answer is %+v", got.Status)
			}
		})
	}
}

func ask(t *testing.T, handler http.Handler, review authorizationv1.SubjectAccessReview) authorizationv1.SubjectAccessReview {
	t.Helper()
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body)))
	var answer authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, recorder.Body)
	}
	return answer
}
