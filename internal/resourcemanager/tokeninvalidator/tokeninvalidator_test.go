package tokeninvalidator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile(t *testing.T) {
	const consider = "token-invalidator.resources.gardener.cloud/consider"
	labelled, none := map[string]string{consider: "true"}, map[string]string(nil)
	token := func(token string) map[string][]byte {
		return map[string][]byte{"ca.crt": []byte("CA"), "token": []byte(token)}
	}
	zero := "\x00\x00\x00"
	for name, tc := range map[string]struct {
		automount *bool
		skip      bool
		typ       corev1.SecretType
		immutable bool
		labels    map[string]string
		token     string

		wantLabels map[string]string
		want       map[string][]byte
	}{
		"the token is not used":           {automount: new(false), token: "valid", wantLabels: labelled, want: token(zero)},
		"another token was issued":        {automount: new(false), labels: labelled, token: "valid", wantLabels: labelled, want: token(zero)},
		"it is invalid already":           {automount: new(false), labels: labelled, token: zero, wantLabels: labelled, want: token(zero)},
		"nothing is said":                 {token: "valid", want: token("valid")},
		"pods mount the token":            {automount: new(true), token: "valid", want: token("valid")},
		"the ServiceAccount is skipped":   {automount: new(false), skip: true, token: "valid", want: token("valid")},
		"it may be valid again":           {automount: new(true), labels: labelled, token: zero, wantLabels: none, want: map[string][]byte{"ca.crt": []byte("CA")}},
		"it is skipped from now on":       {automount: new(false), skip: true, labels: labelled, token: zero, want: map[string][]byte{"ca.crt": []byte("CA")}},
		"a Secret of another type":        {automount: new(false), typ: corev1.SecretTypeOpaque, token: "valid", want: token("valid")},
		"a Secret that cannot be changed": {automount: new(false), immutable: true, token: "valid", want: token("valid")},
	} {
		t.Run(name, func(t *testing.T) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, AutomountServiceAccountToken: tc.automount}
			if tc.skip {
				account.Labels = map[string]string{"token-invalidator.resources.gardener.cloud/skip": "true"}
			}
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a-token", Labels: tc.labels, Annotations: map[string]string{"kubernetes.io/service-account.name": "a"}},
				Type:       corev1.SecretTypeServiceAccountToken, Data: token(tc.token), Immutable: &tc.immutable,
			}
			if tc.typ != "" {
				secret.Type = tc.typ
			}
			c := fake.NewClientBuilder().WithObjects(account, secret).Build()
			r := &reconciler{client: c, api: c}
			requests := r.secretsOf(t.Context(), account)
			if diff := cmp.Diff([]reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(secret)}}, requests); diff != "" {
				t.Fatalf("Secrets of the ServiceAccount (-want +got):\n%s", diff)
			}
			var version string
			for pass := range 2 {
				if _, err := r.Reconcile(t.Context(), requests[0]); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
					t.Fatal(err)
				}
				if pass > 0 && secret.ResourceVersion != version {
					t.Error("a second pass changes the Secret")
				}
				version = secret.ResourceVersion
			}
			if diff := cmp.Diff(tc.want, secret.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantLabels, secret.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// A Secret whose ServiceAccount does not exist is not changed.
func TestNoServiceAccount(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a-token", Annotations: map[string]string{"kubernetes.io/service-account.name": "a"}},
		Type:       corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("valid")},
	}
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	if _, err := (&reconciler{client: c, api: c}).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || string(secret.Data["token"]) != "valid" {
		t.Errorf("the token is %q (%v)", secret.Data["token"], err)
	}
}
