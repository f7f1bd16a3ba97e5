package admissioncontroller_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// TestGardenlets is about what the gardenlets of two seeds may do behind a kube-apiserver, before and after objects change, and without
// gardener-admission-controller.
func TestGardenlets(t *testing.T) {
	e := env.Start(t, env.Lenient(), env.WithAdmissionController())
	gardenlet := func(seed string) client.WithWatch {
		c, err := client.NewWithWatch(e.Gardenlet(t, seed), client.Options{Scheme: e.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := gardenlet("a"), gardenlet("b")
	create(t, e.Client, builder.CloudProfile("local"), builder.Seed("a"), builder.Seed("b"))
	for _, namespace := range []string{"garden-a", "garden-b"} {
		seed := namespace[len("garden-"):]
		create(
			t, e.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}},
			binding(namespace), builder.Shoot("s", builder.Workers(1), builder.In(namespace), builder.On(seed)),
		)
	}
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	shoot := func(namespace string) client.Object { return builder.Shoot("s", builder.In(namespace)) }
	// Only what belongs to seed a, and there only what it needs.
	ownOnly := func() {
		t.Helper()
		allowed(t, a, secret("garden-a", "credentials"))
		allowed(t, a, shoot("garden-a"))
		allowed(t, b, secret("garden-b", "credentials"))
		for _, obj := range []client.Object{secret("garden-b", "credentials"), shoot("garden-b"), secret("garden-a", "other"), secret("garden-a", "missing")} {
			forbidden(t, a, obj)
		}
	}

	step := env.Story(t)
	step("each reads what is its own")
	ownOnly()
	forbidden(t, b, builder.Seed("a"))
	allowed(t, a, builder.Seed("a"))

	step("Shoots are listed by the label of the seed")
	shoots := &corev1beta1.ShootList{}
	if err := a.List(t.Context(), shoots, client.MatchingLabels{"name.seed.gardener.cloud/a": "true"}); err != nil || len(shoots.Items) != 1 {
		t.Errorf("%d own Shoots are listed, error %v", len(shoots.Items), err)
	}
	for name, option := range map[string]client.ListOption{
		"all": &client.ListOptions{}, "those of b": client.MatchingLabels{"name.seed.gardener.cloud/b": "true"},
		"those of b and more": client.HasLabels{"name.seed.gardener.cloud/a"},
	} {
		if err := a.List(t.Context(), shoots, option); !apierrors.IsForbidden(err) {
			t.Errorf("list %s: %v", name, err)
		}
	}

	step("what does not exist can be deleted, what nothing refers to cannot")
	if err := a.Delete(t.Context(), secret("garden-b", "missing")); !apierrors.IsNotFound(err) {
		t.Errorf("delete a Secret that does not exist: %v", err)
	}
	if err := a.Delete(t.Context(), secret("garden-b", "other")); !apierrors.IsForbidden(err) {
		t.Errorf("delete a Secret of no seed: %v", err)
	}

	step("a deleted reference counts no more, a recreated one again")
	if err := e.Client.Delete(t.Context(), binding("garden-a")); err != nil {
		t.Fatal(err)
	}
	env.AwaitRequest(t, func(ctx context.Context) error {
		if err := a.Get(ctx, client.ObjectKeyFromObject(secret("garden-a", "credentials")), &corev1.Secret{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("read the Secret: %v, want Forbidden", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	create(t, e.Client, binding("garden-a"))
	ownOnly()

	step("without the process gardenlets are refused, others are not")
	e.StopAdmissionController()
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(shoot("garden-a")), &corev1beta1.Shoot{}); err == nil {
		t.Error("a gardenlet reads a Shoot while nothing authorizes it")
	}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(shoot("garden-a")), &corev1beta1.Shoot{}); err != nil {
		t.Errorf("the administrator: %v", err)
	}

	step("gardener-apiserver itself decides alike, with its own copy of the graph")
	direct := e.Gardenlet(t, "a")
	direct.Host = e.Direct.Host
	own, err := client.New(direct, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	allowed(t, own, shoot("garden-a"))
	if err := own.Get(t.Context(), client.ObjectKeyFromObject(shoot("garden-b")), &corev1beta1.Shoot{}); err == nil {
		t.Error("a gardenlet reads a Shoot of another seed from gardener-apiserver")
	}

	step("as soon as it is ready again, its decisions are as before")
	e.StartAdmissionController(t)
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(secret("garden-a", "credentials")), &corev1.Secret{}); err != nil {
		t.Errorf("right after the start: %v", err)
	}
	ownOnly()
}

// TestCallers is about who may ask the authorizers, and see what they decide by.
func TestCallers(t *testing.T) {
	e := env.Start(t, env.Lenient(), env.WithAdmissionController(func(c *admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration) {
		c.Server.EnableDebugHandlers = new(true)
	}))
	url := e.Webhooks().URL
	cas := x509.NewCertPool()
	cas.AppendCertsFromPEM(e.Config.CAData)
	certificate, err := tls.X509KeyPair(e.Config.CertData, e.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	with := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: cas, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}}}
	without := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: cas, MinVersion: tls.VersionTLS13}}}
	t.Cleanup(with.CloseIdleConnections)
	t.Cleanup(without.CloseIdleConnections)
	for name, tc := range map[string]struct {
		client       *http.Client
		method, path string
		want         int
	}{
		"authorizer of seeds, with a certificate":     {with, http.MethodPost, "/webhooks/auth/seed", http.StatusOK},
		"authorizer of shoots, with a certificate":    {with, http.MethodPost, "/webhooks/auth/shoot", http.StatusOK},
		"authorizer of seeds, without a certificate":  {without, http.MethodPost, "/webhooks/auth/seed", http.StatusUnauthorized},
		"authorizer of shoots, without a certificate": {without, http.MethodPost, "/webhooks/auth/shoot", http.StatusUnauthorized},
		"a webhook for admission":                     {without, http.MethodPost, "/webhooks/update-restriction", http.StatusOK},
		"the graph":                                   {without, http.MethodGet, "/debug/resource-dependency-graph", http.StatusUnauthorized},
		"the graph of shoots":                         {without, http.MethodGet, "/debug/resource-dependency-graph-shoot", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, bytes.NewReader([]byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			response, err := tc.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("status %s, want %d", response.Status, tc.want)
			}
		})
	}
}

func binding(namespace string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "local"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "credentials"},
	}
}

// allowed waits until a client may read an object: the admission controller observes changes a moment later.
func allowed(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	env.AwaitRequest(t, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)); err != nil {
			return fmt.Errorf("read %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
		return nil
	})
}

func forbidden(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)); !apierrors.IsForbidden(err) {
		t.Errorf("read %T %s: %v, want Forbidden", obj, client.ObjectKeyFromObject(obj), err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}
}
