package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const namespace = "extension-provider-example"

func newKeeper(c client.Client, clock *testingclock.FakeClock) *keeper {
	return &keeper{client: c, reader: c, Options: Options{
		Name: "provider-example", Namespace: namespace, Service: "provider-example-webhook", Clock: clock,
		Webhooks: []Webhook{{Name: "controlplane"}},
	}}
}

// served connects to the Service with the registered bundle, and returns the certificate of the server.
func served(t *testing.T, k *keeper, at time.Time) *x509.Certificate {
	t.Helper()
	config := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := k.client.Get(t.Context(), client.ObjectKey{Name: "gardener-extension-provider-example"}, config); err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(config.Webhooks[0].ClientConfig.CABundle)
	current, err := k.certificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(current.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificate.Verify(x509.VerifyOptions{
		Roots: trusted, DNSName: "provider-example-webhook." + namespace + ".svc", CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		t.Errorf("the kube-apiserver does not trust the certificate at %s: %v", at, err)
	}
	return certificate
}

// Owners of a shoot can have its kube-apiserver call any path.
func TestShootsReachTheirOwnWebhooksOnly(t *testing.T) {
	k := &keeper{Options: Options{
		Name: "provider-example", Namespace: namespace, Service: "s", Port: 10250,
		Webhooks: []Webhook{{Name: "controlplane"}}, Shoots: &Shoots{Port: 10251, ServicePort: 444, Webhooks: []Webhook{{Name: "nodes"}}},
	}}
	if err := k.separate(); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, server := range k.servers() {
		for _, path := range []string{"/controlplane", "/nodes"} {
			if _, pattern := server.WebhookMux().Handler(httptest.NewRequest(http.MethodPost, path, http.NoBody)); pattern == path {
				got[name] = append(got[name], path)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"webhooks": {"/controlplane"}, "shoot-webhooks": {"/nodes"}}, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		change func(*Options)
		ok     bool
	}{
		"no port":                       {change: func(o *Options) { o.Shoots.Port = 0 }},
		"the same port":                 {change: func(o *Options) { o.Shoots.Port = 10250 }},
		"no port of the Service":        {change: func(o *Options) { o.Shoots.ServicePort = 0 }},
		"the same port of the Service":  {change: func(o *Options) { o.Shoots.ServicePort = 443 }},
		"there are none for the seed":   {change: func(o *Options) { o.Webhooks, o.Shoots.Port, o.Shoots.ServicePort = nil, 0, 0 }, ok: true},
		"there are none for the shoots": {change: func(o *Options) { o.Shoots = nil }, ok: true},
	} {
		o := k.Options
		o.Shoots = new(*o.Shoots)
		tc.change(&o)
		if err := o.separate(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for address, want := range map[string]string{"": "https://s.extension-provider-example:444/nodes", "192.0.2.1:8443": "https://192.0.2.1:444/nodes"} {
		k.URL = address
		if got := *k.byURL(nil, k.Shoots.ServicePort)("nodes").URL; got != want {
			t.Errorf("shoots call %s, want %s", got, want)
		}
	}
}

// TestRenewal has the certificates of five years. Another replica, which was not restarted, always has the same ones, and those that it has until it checks
// are trusted, too.
func TestRenewal(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "u"}}).Build()
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	first, second := newKeeper(c, clock), newKeeper(c, clock)
	if _, err := first.certificate(nil); err == nil {
		t.Error("there is a certificate before the first one was created")
	}
	seen, authorities := map[string]bool{}, map[string]bool{}
	for day := 0; day < 5*365; day += 10 {
		for _, k := range []*keeper{first, second} {
			if err := k.renew(t.Context()); err != nil {
				t.Fatalf("day %d: %v", day, err)
			}
			if second.current.Load() != nil {
				served(t, second, clock.Now())
			}
		}
		a, b := served(t, first, clock.Now()), served(t, second, clock.Now())
		if !a.Equal(b) {
			t.Fatalf("day %d: replicas have different certificates", day)
		}
		seen[a.SerialNumber.String()], authorities[string(a.AuthorityKeyId)] = true, true
		clock.Step(10 * 24 * time.Hour)
	}
	if len(seen) < 5*365/90 || len(authorities) < 2 {
		t.Errorf("%d certificates of %d CAs in five years", len(seen), len(authorities))
	}
	left := &corev1.SecretList{}
	if err := c.List(t.Context(), left, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 5 {
		t.Errorf("%d Secrets are left", len(left.Items))
	}
}

// registered returns the names of the webhooks in the configurations of a keeper.
func registered(t *testing.T, k *keeper) (mutating, validating []string) {
	t.Helper()
	key := client.ObjectKey{Name: "gardener-extension-provider-example"}
	m, v := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(k.client.Get(t.Context(), key, m), k.client.Get(t.Context(), key, v)); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Webhooks {
		mutating = append(mutating, w.Name)
	}
	for _, w := range v.Webhooks {
		validating = append(validating, w.Name)
	}
	return mutating, validating
}

// Webhooks that are disabled, or that a version does not have any more, are not called any more: nothing would respond. Those of another process of this name,
// in another namespace, are.
func TestFormerWebhooksAreRemoved(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "u"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}},
	).WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		err := c.Patch(ctx, o, p, options...)
		if err != nil && p.Type() == types.JSONPatchType && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown { // as a kube-apiserver does
			return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return err
	}}).Build()
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	all := []Webhook{{Name: "controlplane"}, {Name: "validate", Validating: true}}
	both := []string{"controlplane.example.extensions.gardener.cloud", "validate.example.extensions.gardener.cloud"}
	for _, step := range []struct {
		name, namespace      string
		webhooks             []Webhook
		mutating, validating []string
	}{
		{"all", namespace, all, both[:1], both[1:]},
		{"none of another process", "other", nil, both[:1], both[1:]},
		{"the validating one is disabled", namespace, all[:1], both[:1], nil},
		{"the same again", namespace, all[:1], both[:1], nil},
		{"all are disabled", namespace, nil, nil, nil},
		{"all are enabled", namespace, all, both[:1], both[1:]},
	} {
		k := newKeeper(c, clock)
		k.Namespace, k.Webhooks = step.namespace, step.webhooks
		if err := k.renew(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		mutating, validating := registered(t, k)
		if diff := cmp.Diff([][]string{step.mutating, step.validating}, [][]string{mutating, validating}); diff != "" {
			t.Errorf("%s: webhooks (-want +got):\n%s", step.name, diff)
		}
	}
}

// A chart grants the kinds of the webhooks that it has, and nothing to a process without.
func TestChartGrantsNothingElse(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not granted"))
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "u"}})
	withoutPatch := c.WithInterceptorFuncs(interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return forbidden
	}}).Build()
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err := newKeeper(withoutPatch, clock).renew(t.Context()); err != nil {
		t.Errorf("without validating webhooks: %v", err)
	}
	nothing := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	}).Build()
	k := newKeeper(nothing, clock)
	k.Webhooks = nil
	if err := k.renew(t.Context()); err != nil {
		t.Errorf("without webhooks: %v", err)
	}
}

func TestConfiguration(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	o := Options{
		Name: "provider-example", Namespace: namespace, Service: "s",
		Webhooks: []Webhook{{Name: "controlplane", NamespaceSelector: selector}, {Name: "network", IgnoreFailure: true, Timeout: 5 * time.Second}},
	}
	config, _ := Configurations(o, []byte("bundle"))
	if config.Name != "gardener-extension-provider-example" {
		t.Errorf("name is %q", config.Name)
	}
	type row struct {
		Name, Policy, Path string
		Timeout            int32
	}
	rows := func(config *admissionregistrationv1.MutatingWebhookConfiguration) (out []row) {
		for _, w := range config.Webhooks {
			path := ""
			if w.ClientConfig.Service != nil {
				path = *w.ClientConfig.Service.Path
			} else {
				path = *w.ClientConfig.URL
			}
			out = append(out, row{w.Name, string(*w.FailurePolicy), path, *w.TimeoutSeconds})
		}
		return out
	}
	if diff := cmp.Diff([]row{
		{"controlplane.example.extensions.gardener.cloud", "Fail", "/controlplane", 10}, {"network.example.extensions.gardener.cloud", "Ignore", "/network", 5},
	}, rows(config)); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(selector, config.Webhooks[0].NamespaceSelector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	o.Service, o.URL = "", "127.0.0.1:8443"
	config, _ = Configurations(o, nil)
	if got := rows(config)[0].Path; got != "https://127.0.0.1:8443/controlplane" {
		t.Errorf("URL is %q", got)
	}
}

// TestErrorIsRetried has a namespace that appears later.
func TestErrorIsRetried(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	k := newKeeper(c, clock)
	if err := k.renew(t.Context()); err == nil {
		t.Fatal("without its namespace, an extension has no registration")
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := k.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	served(t, k, clock.Now())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Start(ended); err != nil {
		t.Errorf("the end of the process is an error: %v", err)
	}
}
