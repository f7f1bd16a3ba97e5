package discoveryserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	testHost   = "discovery.example.com"
	testUID    = "7b4ed380-2eea-4cf5-87d9-fd220727bb54"
	testIssuer = "https://" + testHost + "/projects/dev/shoots/" + testUID + "/issuer"
	shootPath  = "/projects/dev/shoots/" + testUID
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// project, shoot and so on are objects of a garden as the gardenlet and users leave them.
func project(name, namespace string) *corev1beta1.Project {
	return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}}
}

func shoot(namespace, name, uid string) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), Annotations: map[string]string{"authentication.gardener.cloud/issuer": "managed"},
	}}
}

func issuerSecret(t *testing.T, issuer string, keys ...crypto.PublicKey) *corev1.Secret {
	t.Helper()
	config, keySet, err := serviceaccountkey.IssuerDocuments(issuer, keys)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-shoot-issuer", Name: "dev--" + testUID, Labels: map[string]string{
			"discovery.gardener.cloud/public": "serviceaccount", "project.gardener.cloud/name": "dev",
			"shoot.gardener.cloud/name": "one", "shoot.gardener.cloud/namespace": "garden-dev",
		}},
		Data: map[string][]byte{"openid-config": config, "jwks": keySet},
	}
}

func caConfigMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "one.ca-cluster", Labels: map[string]string{
			"discovery.gardener.cloud/public": "shoot-ca", "gardener.cloud/role": "ca-cluster", "gardener.cloud/update-restriction": "true",
			"shoot.gardener.cloud/name": "one", "shoot.gardener.cloud/uid": testUID,
		}},
		Data: map[string]string{"ca.crt": string(newCA(t))},
	}
}

// newCA returns the certificate of a CA.
func newCA(t *testing.T) []byte {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	m, err := secrets.New(t.Context(), secrets.Values{Client: c, Namespace: "a", Identity: "test"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := m.Generate(t.Context(), &secrets.CertificateAuthority{Name: "ca", CommonName: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Data["ca.crt"]
}

// testServer is a handler over a fake garden.
type testServer struct {
	http.Handler
	logs     *strings.Builder
	registry *prometheus.Registry
}

func newTestServer(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) testServer {
	t.Helper()
	h := newTestHandler(t, funcs, objects...)
	s := testServer{logs: &strings.Builder{}, registry: prometheus.NewRegistry()}
	s.registry.MustRegister(h.metrics.requests, h.metrics.refused)
	h.refusals.log = funcr.New(func(_, args string) { fmt.Fprintln(s.logs, args) }, funcr.Options{})
	s.Handler = h.handler()
	return s
}

func newTestHandler(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *handler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(metadata(), uidIndex, indexUID).WithInterceptorFuncs(funcs).Build()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return &handler{
		shoots: shoots{gardenCache: garden, host: testHost}, refusals: newRefusals(logr.Discard(), m), metrics: m,
		workloadIdentity: func() issuerDocuments { return issuerDocuments{[]byte(`{"issuer":"i"}`), []byte(`{"keys":[]}`)} },
	}
}

func (s testServer) request(method, path string, header http.Header) *http.Response {
	r := httptest.NewRequest(method, "https://"+testHost+path, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestServe(t *testing.T) {
	secret, ca := issuerSecret(t, testIssuer, newKey(t).Public()), caConfigMap(t)
	s := newTestServer(t, interceptor.Funcs{}, project("dev", "garden-dev"), shoot("garden-dev", "one", testUID), secret, ca)
	for path, want := range map[string]struct{ contentType, body string }{
		shootPath + "/issuer/.well-known/openid-configuration":              {"application/json", string(secret.Data["openid-config"])},
		shootPath + "/issuer/jwks":                                          {"application/jwk-set+json", string(secret.Data["jwks"])},
		shootPath + "/cluster-ca":                                           {"application/json", `{"certs":"` + strings.ReplaceAll(ca.Data["ca.crt"], "\n", `\n`) + `"}`},
		"/garden/workload-identity/issuer/.well-known/openid-configuration": {"application/json", `{"issuer":"i"}`},
		"/garden/workload-identity/issuer/jwks":                             {"application/jwk-set+json", `{"keys":[]}`},
	} {
		t.Run(path, func(t *testing.T) {
			r := s.request(http.MethodGet, path, nil)
			if got := body(t, r); r.StatusCode != http.StatusOK || got != want.body {
				t.Fatalf("status %d, body %s, want %s", r.StatusCode, got, want.body)
			}
			tag := r.Header.Get("ETag")
			r.Header.Del("ETag")
			if diff := cmp.Diff(http.Header{
				"Content-Type": {want.contentType}, "Content-Length": {fmt.Sprint(len(want.body))}, "Cache-Control": {"public, max-age=300"},
				"X-Content-Type-Options": {"nosniff"}, "Strict-Transport-Security": {"max-age=31536000"}, "Accept-Ranges": {"bytes"},
			}, r.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			head := s.request(http.MethodHead, path, nil)
			if got := body(t, head); head.StatusCode != http.StatusOK || got != "" || head.Header.Get("ETag") != tag || head.ContentLength != int64(len(want.body)) {
				t.Errorf("HEAD: status %d, body %q, header %v", head.StatusCode, got, head.Header)
			}
			again := s.request(http.MethodGet, path, http.Header{"If-None-Match": {tag}})
			if got := body(t, again); again.StatusCode != http.StatusNotModified || got != "" {
				t.Errorf("what has not changed: status %d, body %q", again.StatusCode, got)
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
				r := s.request(method, path, nil)
				if got := body(t, r); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" ||
					got != `{"code":405,"message":"method not allowed"}`+"\n" || r.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: status %d, body %q", method, r.StatusCode, got)
				}
			}
		})
	}
	if s.logs.Len() > 0 {
		t.Errorf("logged: %s", s.logs)
	}
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP discovery_server_refused_objects Number of Secrets and ConfigMaps that are not served, as they do not fit to their Shoot or are invalid.
# TYPE discovery_server_refused_objects gauge
discovery_server_refused_objects 0
`), "discovery_server_refused_objects"); err != nil {
		t.Error(err)
	}
}

// What must not be served is not found, and the log says once why.
func TestNotFound(t *testing.T) {
	type objects struct {
		project   *corev1beta1.Project
		shoot     *corev1beta1.Shoot
		secret    *corev1.Secret
		configMap *corev1.ConfigMap
	}
	label := func(object client.Object, key, value string) {
		all := object.GetLabels()
		all[key] = value
		object.SetLabels(all)
	}
	const both, issuerOnly, caOnly = "both", "issuer", "CA"
	for name, tc := range map[string]struct {
		change  func(*objects)
		missing string
		logged  string
	}{
		"no such project":       {func(o *objects) { o.project.Name = "other" }, both, ""},
		"another project":       {func(o *objects) { o.project.Spec.Namespace = new("garden-other") }, both, ""},
		"project in the making": {func(o *objects) { o.project.Spec.Namespace = nil }, both, ""},
		"another UID":           {func(o *objects) { o.shoot.UID = "2" }, both, ""},
		"nothing published":     {func(o *objects) { o.secret.Name, o.configMap.Name = "a", "a" }, both, ""},
		"Secret for a shoot of another project, by its label": {
			func(o *objects) { label(o.secret, "project.gardener.cloud/name", "other") }, issuerOnly, `project.gardener.cloud/name is \"other\" instead of \"dev\"`,
		},
		"Secret for a shoot of another project, by the namespace": {
			func(o *objects) { label(o.secret, "shoot.gardener.cloud/namespace", "garden-other") }, issuerOnly,
			`shoot.gardener.cloud/namespace is \"garden-other\" instead of \"garden-dev\"`,
		},
		"Secret for another shoot": {
			func(o *objects) { label(o.secret, "shoot.gardener.cloud/name", "two") }, issuerOnly, `shoot.gardener.cloud/name is \"two\" instead of \"one\"`,
		},
		"Secret that is not to be published": {
			func(o *objects) { delete(o.secret.Labels, "discovery.gardener.cloud/public") }, issuerOnly, `discovery.gardener.cloud/public is \"\"`,
		},
		"shoot with an issuer of its own": {func(o *objects) { o.shoot.Annotations = nil }, issuerOnly, "Shoot garden-dev/one has no managed issuer"},
		"documents of another issuer": {
			func(o *objects) {
				o.secret.Data = issuerSecret(t, "https://elsewhere.example", newKey(t).Public()).Data
			}, issuerOnly,
			`is for issuer \"https://elsewhere.example\"`,
		},
		"documents of another host": {
			func(o *objects) {
				o.secret.Data = issuerSecret(t, strings.Replace(testIssuer, testHost, "elsewhere.example", 1), newKey(t).Public()).Data
			}, issuerOnly, `is for issuer \"https://elsewhere.example/projects`,
		},
		"a private key": {
			func(o *objects) {
				o.secret.Data["jwks"] = []byte(strings.Replace(string(o.secret.Data["jwks"]), `"use"`, `"d":"c2VjcmV0","use"`, 1))
			}, issuerOnly, "it is not public",
		},
		"empty Secret": {func(o *objects) { o.secret.Data = nil }, issuerOnly, "is not valid JSON"},
		"CA that a user could have written": {
			func(o *objects) { delete(o.configMap.Labels, "gardener.cloud/update-restriction") }, caOnly, `gardener.cloud/update-restriction is \"\" instead of \"true\"`,
		},
		"CA of another shoot":   {func(o *objects) { label(o.configMap, "shoot.gardener.cloud/uid", "2") }, caOnly, `shoot.gardener.cloud/uid is \"2\"`},
		"CA for something else": {func(o *objects) { label(o.configMap, "gardener.cloud/role", "ca-kubelet") }, caOnly, `gardener.cloud/role is \"ca-kubelet\"`},
		"a key beside the CA": {
			func(o *objects) {
				o.configMap.Data["ca.crt"] += "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n"
			}, caOnly,
			"its CA bundle has more than CA certificates",
		},
		"no certificate": {func(o *objects) { o.configMap.Data = nil }, caOnly, "its CA bundle has no certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects{project("dev", "garden-dev"), shoot("garden-dev", "one", testUID), issuerSecret(t, testIssuer, newKey(t).Public()), caConfigMap(t)}
			tc.change(&o)
			s := newTestServer(t, interceptor.Funcs{}, o.project, o.shoot, o.secret, o.configMap)
			for range 2 {
				for path, kind := range map[string]string{
					"/issuer/.well-known/openid-configuration": issuerOnly, "/issuer/jwks": issuerOnly, "/cluster-ca": caOnly,
				} {
					r := s.request(http.MethodGet, shootPath+path, nil)
					got := body(t, r)
					want := http.StatusOK
					if tc.missing == both || tc.missing == kind {
						want = http.StatusNotFound
						if got != `{"code":404,"message":"not found"}`+"\n" || r.Header.Get("ETag") != "" || r.Header.Get("Cache-Control") != "no-store" {
							t.Errorf("%s: body %q, header %v", path, got, r.Header)
						}
					}
					if r.StatusCode != want {
						t.Errorf("%s: status %d, want %d, body %s", path, r.StatusCode, want, got)
					}
				}
			}
			lines := strings.Count(s.logs.String(), "\n")
			if !strings.Contains(s.logs.String(), strings.ReplaceAll(tc.logged, `\"`, `\\\"`)) && !strings.Contains(s.logs.String(), tc.logged) ||
				lines > 1 || (lines == 0) != (tc.logged == "") || strings.Contains(s.logs.String(), "c2VjcmV0") {
				t.Errorf("want %q once in the log: %s", tc.logged, s.logs)
			}
		})
	}
}

func TestUnknownPaths(t *testing.T) {
	s := newTestServer(t, interceptor.Funcs{})
	for _, path := range []string{
		"/", "/healthz", "/metrics", shootPath, shootPath + "/issuer", shootPath + "/issuer/jwks/", shootPath + "/issuer/.well-known/other",
		"/garden/workload-identity/issuer", "/projects/%2e%2e/shoots/1/cluster-ca", "/projects/a%2fb/shoots/1/issuer/jwks",
	} {
		if r := s.request(http.MethodGet, path, nil); r.StatusCode != http.StatusNotFound || body(t, r) != `{"code":404,"message":"not found"}`+"\n" {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
	}
	r := s.request(http.MethodPost, "/", nil)
	if _ = body(t, r); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", r.StatusCode)
	}
}

// Errors are for the operator, not for clients.
func TestInternalError(t *testing.T) {
	s := newTestServer(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no answer")
	}})
	r := s.request(http.MethodGet, shootPath+"/issuer/jwks", nil)
	if got := body(t, r); r.StatusCode != http.StatusInternalServerError || got != `{"code":500,"message":"internal server error"}`+"\n" {
		t.Errorf("status %d, body %q", r.StatusCode, got)
	}
}

// A refusal ends when the object is valid, and is logged again when it comes back.
func TestRefusalsEnd(t *testing.T) {
	var logs strings.Builder
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := newRefusals(funcr.New(func(_, args string) { fmt.Fprintln(&logs, args) }, funcr.Options{}), m)
	bad := &refusedError{&corev1.Secret{}, "bad"}
	for _, step := range []struct {
		refused *refusedError
		lines   int
		gauge   float64
	}{{bad, 1, 1}, {bad, 1, 1}, {&refusedError{&corev1.Secret{}, "worse"}, 2, 1}, {nil, 2, 0}, {bad, 3, 1}} {
		r.report("issuer/dev/1", step.refused)
		if lines, gauge := strings.Count(logs.String(), "\n"), testutil.ToFloat64(m.refused); lines != step.lines || gauge != step.gauge {
			t.Errorf("%d lines and %v objects, want %d and %v", lines, gauge, step.lines, step.gauge)
		}
	}
}
