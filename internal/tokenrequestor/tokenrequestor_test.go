package tokenrequestor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://api}}, {name: other, cluster: {server: https://other}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: ""}}]
`

// world is a source and a target cluster; the target counts its tokens.
type world struct {
	source, target client.Client
	tokens, writes int
	clock          *clocktesting.FakePassiveClock
	reconciler     *Reconciler
}

func newWorld(secret *corev1.Secret) *world {
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	w.source = fake.NewClientBuilder().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	w.target = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, request client.Object, _ ...client.SubResourceCreateOption) error {
			w.tokens++
			r := request.(*authenticationv1.TokenRequest)
			r.Status.Token = fmt.Sprintf("token-%d", w.tokens)
			r.Status.ExpirationTimestamp = metav1.NewTime(w.clock.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second))
			return nil
		},
	}).Build()
	w.reconciler = &Reconciler{
		Class: "shoot", sourceClient: w.source, sourceReader: w.source, targetClient: w.target, clock: w.clock,
		caBundle: func() ([]byte, error) { return []byte("CA"), nil }, early: func() float64 { return 0 }, valid: func(string) bool { return true },
	}
	return w
}

func (w *world) pass(t *testing.T) (reconcile.Result, *corev1.Secret) {
	t.Helper()
	key := client.ObjectKey{Namespace: "shoot--a--b", Name: "access"}
	result, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := w.source.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	return result, secret
}

func secret(data map[string][]byte, annotations ...string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot--a--b", Name: "access",
			Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
			Annotations: map[string]string{
				"serviceaccount.resources.gardener.cloud/name": "sa", "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
			},
		},
		Data: data,
	}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations[annotations[i]] = annotations[i+1]
	}
	return s
}

func TestATokenIsRequestedAndRenewed(t *testing.T) {
	w := newWorld(secret(nil, "serviceaccount.resources.gardener.cloud/labels", `{"some":"label"}`))
	result, s := w.pass(t)
	if result.RequeueAfter != 9*time.Hour+36*time.Minute {
		t.Errorf("renewed after %v, want 80 %% of 12h", result.RequeueAfter)
	}
	if diff := cmp.Diff(map[string][]byte{"token": []byte("token-1")}, s.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if got := s.Annotations["serviceaccount.resources.gardener.cloud/token-renew-timestamp"]; got != "2026-11-21T21:36:00Z" {
		t.Errorf("renewed at %s", got)
	}
	account := &corev1.ServiceAccount{}
	if err := w.target.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "sa"}, account); err != nil {
		t.Fatal(err)
	}
	if account.Labels["some"] != "label" || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Errorf("account is %+v", account)
	}
	if w.pass(t); w.tokens != 1 || w.writes != 1 {
		t.Errorf("%d tokens and %d writes after a second pass", w.tokens, w.writes)
	}
	w.clock.SetTime(w.clock.Now().Add(9*time.Hour + 36*time.Minute))
	if _, s = w.pass(t); string(s.Data["token"]) != "token-2" {
		t.Errorf("the token is %q after it was due", s.Data["token"])
	}
	// A token of an account that is gone is worth nothing.
	if err := w.target.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if _, s = w.pass(t); string(s.Data["token"]) != "token-3" {
		t.Errorf("the token is %q after its account was recreated", s.Data["token"])
	}
}

func TestRenewal(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		lifetime time.Duration
		early    float64
		want     time.Duration
	}{
		"80 percent":        {lifetime: 10 * time.Hour, want: 8 * time.Hour},
		"a day at most":     {lifetime: 90 * 24 * time.Hour, want: 24 * time.Hour},
		"a bit earlier":     {lifetime: 10 * time.Hour, early: 0.05, want: 7*time.Hour + 36*time.Minute},
		"expired right now": {want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := renewal(now, now.Add(tc.lifetime), tc.early).Sub(now); got.Round(time.Second) != tc.want {
				t.Errorf("renewal after %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCertificateAuthorities(t *testing.T) {
	const inject = "serviceaccount.resources.gardener.cloud/inject-ca-bundle"
	w := newWorld(secret(nil, inject, "true"))
	if _, s := w.pass(t); string(s.Data["bundle.crt"]) != "CA" {
		t.Errorf("data is %q", s.Data)
	}
	w.reconciler.caBundle = func() ([]byte, error) { return []byte("new CA"), nil }
	if _, s := w.pass(t); string(s.Data["bundle.crt"]) != "new CA" || w.tokens != 1 {
		t.Errorf("data is %q, %d tokens", s.Data, w.tokens)
	}
	w = newWorld(secret(map[string][]byte{"kubeconfig": []byte(kubeconfig)}, inject, "true"))
	_, s := w.pass(t)
	config, user, cluster, err := current(s.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	if user.Token != "token-1" || string(cluster.CertificateAuthorityData) != "CA" || len(config.Clusters["other"].CertificateAuthorityData) > 0 || s.Data["token"] != nil {
		t.Errorf("kubeconfig is\n%s", s.Data["kubeconfig"])
	}
	if w.pass(t); w.writes != 1 {
		t.Errorf("%d writes in a steady state", w.writes)
	}
}

func TestASecretOfTheTarget(t *testing.T) {
	w := newWorld(secret(map[string][]byte{"token": []byte("old")},
		"token-requestor.resources.gardener.cloud/target-secret-name", "foo", "token-requestor.resources.gardener.cloud/target-secret-namespace", "bar"))
	_, s := w.pass(t)
	if len(s.Data) > 0 {
		t.Errorf("the source still has %d keys", len(s.Data))
	}
	filled := &corev1.Secret{}
	if err := w.target.Get(t.Context(), client.ObjectKey{Namespace: "bar", Name: "foo"}, filled); err != nil || string(filled.Data["token"]) != "token-1" {
		t.Errorf("the target has %q, %v", filled.Data, err)
	}
	if w.pass(t); w.tokens != 1 {
		t.Errorf("%d tokens in a steady state", w.tokens)
	}
	w.reconciler.valid = func(token string) bool { return token != "token-1" }
	for range 2 {
		if w.pass(t); w.tokens != 2 {
			t.Errorf("%d tokens after the first one was no longer valid", w.tokens)
		}
	}
}

func TestInvalidSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"no name":       {secret(nil, "serviceaccount.resources.gardener.cloud/name", ""), "serviceaccount.resources.gardener.cloud/name is missing"},
		"labels":        {secret(nil, "serviceaccount.resources.gardener.cloud/labels", "{"), "serviceaccount.resources.gardener.cloud/labels"},
		"lifetime":      {secret(nil, "serviceaccount.resources.gardener.cloud/token-expiration-duration", "soon"), "is not a duration"},
		"half a target": {secret(nil, "token-requestor.resources.gardener.cloud/target-secret-name", "foo"), "one of them is missing"},
		"kubeconfig":    {secret(map[string][]byte{"kubeconfig": []byte("hunter2: {")}), "not usable"},
		"no context":    {secret(map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\ncurrent-context: gone\n")}), `there is no context "gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newWorld(tc.secret).reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.secret)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestUsersAndOthersGetNoToken(t *testing.T) {
	const account, target = "serviceaccount.resources.gardener.cloud/name", "token-requestor.resources.gardener.cloud/target-secret-"
	for name, tc := range map[string]struct {
		class, namespace, name string
		annotations            []string
		want                   string
	}{
		"a component of the shoot": {class: "shoot", name: "access"},
		"an extension":             {class: "garden", namespace: "seed-a", name: "access", annotations: []string{account, "extension-a"}},
		"another account of the garden": {
			class: "garden", namespace: "seed-a", name: "access", want: `"sa" does not begin with "extension-"`,
		},
		"credentials of a user": {
			class: "garden", namespace: "seed-a", name: "cloudprovider", annotations: []string{account, "extension-a"}, want: "a copy of what users have",
		},
		"a Secret that a Shoot names": {class: "shoot", name: "ref-a", want: "a copy of what users have"},
		"a Secret in the namespace of the accounts": {
			class: "garden", namespace: "seed-a", name: "access",
			annotations: []string{account, "extension-a", target + "name", "t", target + "namespace", "seed-a"},
		},
		"a Secret elsewhere in the garden": {
			class: "garden", namespace: "seed-a", name: "access",
			annotations: []string{account, "extension-a", target + "name", "t", target + "namespace", "garden-dev"}, want: `"garden-dev" is not the namespace "seed-a"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := secret(nil, tc.annotations...)
			s.Name, s.Labels["resources.gardener.cloud/class"] = tc.name, tc.class
			w := newWorld(s)
			w.reconciler.Class, w.reconciler.TargetNamespace = tc.class, tc.namespace
			_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
			if tokens := map[bool]int{true: 1}[tc.want == ""]; w.tokens != tokens {
				t.Errorf("%d tokens were requested, want %d", w.tokens, tokens)
			}
		})
	}
}

func TestResponsible(t *testing.T) {
	other := secret(nil)
	other.Labels["resources.gardener.cloud/class"] = "garden"
	unlabelled := secret(nil)
	unlabelled.Labels = nil
	for name, tc := range map[string]struct {
		class  string
		secret *corev1.Secret
		want   bool
	}{
		"its class":     {"shoot", secret(nil), true},
		"another class": {"shoot", other, false},
		"all classes":   {"", other, true},
		"no purpose":    {"", unlabelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Reconciler{Class: tc.class}).responsible(tc.secret); got != tc.want {
				t.Errorf("responsible() is %t", got)
			}
		})
	}
}
