package workloadidentity

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestSecretsAreFilled(t *testing.T) {
	const namespaceKey, nameKey = "workloadidentity.security.gardener.cloud/namespace", "workloadidentity.security.gardener.cloud/name"
	const contextKey, renewKey = "workloadidentity.security.gardener.cloud/context-object", "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	for name, tc := range map[string]struct {
		label       string
		annotations map[string]string
		token, want string
		requests    int
		context     *securityv1alpha1.ContextObject
		after       time.Duration
		fails       bool
	}{
		"a new one": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w"},
			want: "new", requests: 1, after: 4 * time.Hour,
		},
		"for a shoot": {
			label:       "workload-identity-token-requestor",
			annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", contextKey: `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"a","namespace":"garden-dev","uid":"1"}`},
			want:        "new", requests: 1, after: 4 * time.Hour,
			context: &securityv1alpha1.ContextObject{Kind: "Shoot", APIVersion: "core.gardener.cloud/v1beta1", Name: "a", Namespace: new("garden-dev"), UID: "1"},
		},
		"one that is good": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T13:00:00Z"},
			token: "old", want: "old", after: time.Hour,
		},
		"one that has been good": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T11:59:59Z"},
			token: "old", want: "new", requests: 1, after: 4 * time.Hour,
		},
		"one whose token somebody has taken away": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", renewKey: "2026-03-04T13:00:00Z"},
			want: "new", requests: 1, after: 4 * time.Hour,
		},
		"one of somebody else":     {label: "other"},
		"one that does not say it": {label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev"}, fails: true},
		"one that says it badly": {
			label: "workload-identity-token-requestor", annotations: map[string]string{namespaceKey: "garden-dev", nameKey: "w", contextKey: "{"}, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "cloudprovider", Labels: map[string]string{"security.gardener.cloud/purpose": tc.label}, Annotations: tc.annotations},
				Data:       map[string][]byte{"config": []byte("c")},
			}
			if tc.token != "" {
				secret.Data["token"] = []byte(tc.token)
			}
			var requests []*securityv1alpha1.TokenRequest
			garden := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, subResource string, identity, body client.Object, _ ...client.SubResourceCreateOption) error {
					if got := subResource + " of " + client.ObjectKeyFromObject(identity).String(); got != "token of garden-dev/w" {
						t.Errorf("somebody asked for %s", got)
					}
					request := body.(*securityv1alpha1.TokenRequest) //nolint:forcetypeassert // it panics in a test
					request.Status = securityv1alpha1.TokenRequestStatus{Token: "new", ExpirationTimestamp: metav1.NewTime(now.Add(5 * time.Hour))}
					requests = append(requests, request)
					return nil
				},
			})
			seed := fake.NewClientBuilder().WithObjects(secret).Build()
			r := &reconciler{early: func() float64 { return 0 }, Values: Values{
				GardenClient: garden, SeedClient: seed, TokenExpiration: 6 * time.Hour, Clock: clocktesting.NewFakePassiveClock(now),
			}}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if result.RequeueAfter != tc.after || len(requests) != tc.requests {
				t.Errorf("%d requests, and the next look after %s", len(requests), result.RequeueAfter)
			}
			for _, request := range requests {
				if diff := cmp.Diff(securityv1alpha1.TokenRequestSpec{ContextObject: tc.context, ExpirationSeconds: new(int64(21600))}, request.Spec); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
			}
			got := &corev1.Secret{}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(secret), got); err != nil {
				t.Fatal(err)
			}
			if string(got.Data["token"]) != tc.want || string(got.Data["config"]) != "c" {
				t.Errorf("the Secret has token %q and config %q", got.Data["token"], got.Data["config"])
			}
		})
	}
}
