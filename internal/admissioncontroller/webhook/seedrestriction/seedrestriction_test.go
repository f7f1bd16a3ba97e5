package seedrestriction_test

import (
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/admissioncontroller/webhook/seedrestriction"
)

// The decisions are tested where they are made; this is about the review.
func TestHandle(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Spec: corev1beta1.ShootSpec{SeedName: new("foo")}}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	}
	const gardenlet, group = "gardener.cloud:system:seed:foo", "gardener.cloud:system:seeds"
	for name, tc := range map[string]struct {
		user      string
		operation admissionv1.Operation
		object    any
		name      string
		live      []client.Object
		want      int32
	}{
		"another user":                  {user: "alice", object: secret("x"), name: "x", want: 200},
		"own, unknown to the cache":     {user: gardenlet, object: secret("s.monitoring"), name: "s.monitoring", live: []client.Object{shoot}, want: 200},
		"of no Shoot":                   {user: gardenlet, object: secret("s.monitoring"), name: "s.monitoring", want: 403},
		"something else":                {user: gardenlet, object: secret("x"), name: "x", want: 403},
		"something else, which exists":  {user: gardenlet, object: secret("x"), name: "x", live: []client.Object{secret("x")}, want: 409},
		"an unexpected operation":       {user: gardenlet, operation: admissionv1.Update, object: secret("s.monitoring"), name: "s.monitoring", want: 400},
		"an object that cannot be read": {user: gardenlet, object: []string{"x"}, name: "x", want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UserInfo: authenticationv1.UserInfo{Username: tc.user, Groups: []string{group}}, Operation: tc.operation,
				Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "secrets"},
				Namespace: "n", Name: tc.name, Object: runtime.RawExtension{Raw: raw},
			}}
			if request.Operation == "" {
				request.Operation = admissionv1.Create
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.live...).Build()
			cache := fake.NewClientBuilder().WithScheme(scheme).Build()
			handler := seedrestriction.New(reader, cache, admission.NewDecoder(scheme), testclock.NewFakePassiveClock(time.Unix(0, 0)))
			response := handler.Handle(t.Context(), request)
			if response.Result.Code != tc.want || response.Allowed != (tc.want == 200) {
				t.Errorf("the answer is %d, allowed %t (%s), want %d", response.Result.Code, response.Allowed, response.Result.Message, tc.want)
			}
		})
	}
}
