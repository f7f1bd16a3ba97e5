package updaterestriction

import (
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/webhooktest"
)

func TestHandle(t *testing.T) {
	const create, update, deletion = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	for name, tc := range map[string]struct {
		user    string
		groups  []string
		allowed []admissionv1.Operation
	}{
		"gardenlet":                        {"gardener.cloud:system:seed:a", []string{"gardener.cloud:system:seeds"}, []admissionv1.Operation{create, update, deletion}},
		"gardenlet of a self-hosted shoot": {"gardener.cloud:system:shoot:garden-a:b", []string{"gardener.cloud:system:shoots"}, []admissionv1.Operation{create, update, deletion}},
		"garbage collector":                {"system:serviceaccount:kube-system:generic-garbage-collector", nil, []admissionv1.Operation{deletion}},
		"component that encrypts":          {"system:serviceaccount:kube-system:gardener-internal", nil, []admissionv1.Operation{update}},
		"its name in another namespace":    {"system:serviceaccount:garden-a:gardener-internal", nil, nil},
		"extension":                        {"system:serviceaccount:seed-a:extension-b", []string{"system:serviceaccounts:seed-a"}, nil},
		"administrator":                    {"kubernetes-admin", []string{"system:masters"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "b.ca-cluster"}}
			allowed := map[admissionv1.Operation]bool{}
			for _, operation := range tc.allowed {
				allowed[operation] = true
			}
			for _, operation := range []admissionv1.Operation{create, update, deletion} {
				request := webhooktest.Create(t, "secrets", secret)
				request.Operation, request.UserInfo.Username, request.UserInfo.Groups = operation, tc.user, tc.groups
				response := Handler{}.Handle(t.Context(), request)
				if allowed[operation] {
					webhooktest.Expect(t, response, webhooktest.Allowed)
				} else {
					webhooktest.Expect(t, response, http.StatusForbidden, tc.user, "secrets")
				}
			}
		})
	}
}

// Whoever rewrites data at rest with another key writes all objects again.
func TestUnchanged(t *testing.T) {
	before := `{"metadata":{"name":"b.ca-cluster","resourceVersion":"1","labels":{"gardener.cloud/update-restriction":"true"}},"data":{"ca.crt":"YQ=="}}`
	for name, tc := range map[string]struct {
		after string
		want  int
	}{
		"nothing":         {before, webhooktest.Allowed},
		"managed fields":  {`{"metadata":{"name":"b.ca-cluster","resourceVersion":"2","managedFields":[{}],"labels":{"gardener.cloud/update-restriction":"true"}},"data":{"ca.crt":"YQ=="}}`, webhooktest.Allowed},
		"data":            {`{"metadata":{"name":"b.ca-cluster","labels":{"gardener.cloud/update-restriction":"true"}},"data":{"ca.crt":"Yg=="}}`, http.StatusForbidden},
		"the label":       {`{"metadata":{"name":"b.ca-cluster"},"data":{"ca.crt":"YQ=="}}`, http.StatusForbidden},
		"what is no JSON": {`{`, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{}
			request.Operation, request.UserInfo.Username = admissionv1.Update, "kubernetes-admin"
			request.OldObject.Raw, request.Object.Raw = []byte(before), []byte(tc.after)
			webhooktest.Expect(t, Handler{}.Handle(t.Context(), request), tc.want)
		})
	}
}
