package restriction

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

var now = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

const (
	project = "garden-dev"
	create  = admissionv1.Create
	update  = admissionv1.Update
	remove  = admissionv1.Delete
)

// The clients of seed "foo" and of the self-hosted shoot "garden-dev/mine", and others.
var (
	seedGardenletUser  = &user.DefaultInfo{Name: "gardener.cloud:system:seed:foo", Groups: []string{"gardener.cloud:system:seeds"}}
	seedExtensionUser  = &user.DefaultInfo{Name: "system:serviceaccount:seed-foo:extension-e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-foo"}}
	shootGardenletUser = &user.DefaultInfo{Name: "gardener.cloud:system:shoot:garden-dev:mine", Groups: []string{"gardener.cloud:system:shoots"}}
	shootExtensionUser = &user.DefaultInfo{Name: "system:serviceaccount:garden-dev:extension-shoot--mine--e", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-dev"}}
	gardenadmUser      = &user.DefaultInfo{Name: "gardener.cloud:gardenadm:shoot:garden-dev:mine", Groups: []string{"gardener.cloud:system:shoots"}}
	someUser           = &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
	// oddUser is in the group of gardenlets but has the name of none.
	oddUser = &user.DefaultInfo{Name: "odd", Groups: []string{"gardener.cloud:system:seeds"}}
)

func meta(namespace, name string, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, c := range change {
		c(&m)
	}
	return m
}

func labelled(pairs ...string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func deleted(m *metav1.ObjectMeta) {
	m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: now}, []string{"gardener"}
}

func renewed(m *metav1.ObjectMeta) {
	m.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}
}

func shoot(namespace, name, seed string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: meta(namespace, name)}
	s.UID = types.UID("uid-of-" + name)
	if seed != "" {
		s.Spec.SeedName = &seed
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func seed(name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{ObjectMeta: meta("", name)}
	s.UID = types.UID("uid-of-" + name)
	for _, c := range change {
		c(s)
	}
	return s
}

func expires(at time.Time) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) { s.Status.ClientCertificateExpirationTimestamp = &metav1.Time{Time: at} }
}

func bucket(name, seed string) *corev1beta1.BackupBucket {
	b := &corev1beta1.BackupBucket{ObjectMeta: meta("", name)}
	if seed != "" {
		b.Spec.SeedName = &seed
	}
	return b
}

func shootBucket(name, shoot string) *corev1beta1.BackupBucket {
	b := bucket(name, "")
	b.Spec.ShootRef = &corev1.ObjectReference{Namespace: project, Name: shoot}
	return b
}

func backupEntry(name, seed, bucket string, change ...func(*corev1beta1.BackupEntry)) *corev1beta1.BackupEntry {
	e := &corev1beta1.BackupEntry{ObjectMeta: meta(project, name), Spec: corev1beta1.BackupEntrySpec{BucketName: bucket}}
	if seed != "" {
		e.Spec.SeedName = &seed
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func ownedBy(shoot string) func(*corev1beta1.BackupEntry) {
	return func(e *corev1beta1.BackupEntry) {
		e.OwnerReferences = []metav1.OwnerReference{{Kind: "Shoot", Name: shoot}}
	}
}

func ofShoot(shoot string) func(*corev1beta1.BackupEntry) {
	return func(e *corev1beta1.BackupEntry) {
		e.Spec.ShootRef = &corev1.ObjectReference{Namespace: project, Name: shoot}
	}
}

func managedSeed(namespace, name, shoot string, change ...func(*metav1.ObjectMeta)) *seedmanagementv1alpha1.ManagedSeed {
	m := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: meta(namespace, name, change...)}
	if shoot != "" {
		m.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: shoot}
	}
	return m
}

func template(m *seedmanagementv1alpha1.ManagedSeed, json string) *seedmanagementv1alpha1.ManagedSeed {
	m.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: []byte(json)}
	return m
}

func secret(namespace, name string, change ...func(*metav1.ObjectMeta)) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(namespace, name, change...)}
}

func account(namespace, name string, secrets ...string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: meta(namespace, name)}
	for _, s := range secrets {
		a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: s})
	}
	return a
}

// gardenletOf begins the description of a bootstrap token for a Gardenlet.
const gardenletOf = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource "

// bootstrapToken is a bootstrap token for a ManagedSeed or Gardenlet.
func bootstrapToken(kind, of string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := secret("kube-system", "bootstrap-token-abcdef")
	s.Type = "bootstrap.kubernetes.io/token"
	s.Data = map[string][]byte{
		"description":                    []byte("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1." + kind + " resource " + of + "."),
		"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func data(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

func without(key string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { delete(s.Data, key) }
}

// certificate is a request for a client certificate.
func certificate(t *testing.T, group, name string, change ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{group}}}
	for _, c := range change {
		c(request)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, request, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "csr"), Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		Usages:  []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
	}}
}

// test is a request and the code of its answer, 0 if it is admitted.
type test struct {
	operation admissionv1.Operation // create if it is empty
	object    client.Object
	old       client.Object
	stored    []client.Object
	// broken is the kind whose objects cannot be read.
	broken string
	want   int32
	// names is what a refusal has to name.
	names string
}

// run makes requests as some users. All get the same answer.
func run(t *testing.T, decide func(*Values, context.Context, *Request) error, resource schema.GroupVersionResource, tests map[string]test, users ...user.Info) {
	t.Helper()
	for _, u := range users {
		for name, tc := range tests {
			t.Run(resource.Resource+"/"+u.GetName()+"/"+name, func(t *testing.T) {
				r := &Request{User: u, Operation: tc.operation, Resource: resource.GroupResource(), Object: tc.object, Old: tc.old}
				if r.Operation == "" {
					r.Operation = create
				}
				for _, obj := range []client.Object{tc.object, tc.old} {
					if obj != nil {
						r.Namespace, r.Name = obj.GetNamespace(), obj.GetName()
					}
				}
				check(t, decide(values(t, tc.broken, tc.stored...), t.Context(), r), tc.want, tc.names)
			})
		}
	}
}

func check(t *testing.T, err error, want int32, names string) {
	t.Helper()
	var (
		refused *Refusal
		got     int32
	)
	if err != nil {
		if !errors.As(err, &refused) {
			t.Fatalf("the error is no refusal: %v", err)
		}
		got = refused.Code
	}
	if got != want || err != nil && !strings.Contains(err.Error(), names) {
		t.Errorf("got %d (%v), want %d naming %q", got, err, want, names)
	}
}

func selfHosted(s *corev1beta1.Shoot) {
	s.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "control-plane", ControlPlane: &corev1beta1.WorkerControlPlane{}}}
}

// values is a garden with some objects.
func values(t *testing.T, broken string, stored ...client.Object) *Values {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme, seedmanagementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// The clients of a shoot are those of a self-hosted one.
	mine := shoot(project, "mine", "", selfHosted)
	if !slices.ContainsFunc(stored, func(obj client.Object) bool {
		return client.ObjectKeyFromObject(obj) == client.ObjectKeyFromObject(mine)
	}) {
		stored = append(slices.Clone(stored), mine)
	}
	errBroken := errors.New("the store is broken")
	garden := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if kindOf(obj) == broken {
				return errBroken
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list).Elem().Name() == broken+"List" {
				return errBroken
			}
			return c.List(ctx, list, opts...)
		},
	})
	return &Values{Garden: garden, KubeAPI: garden, Clock: clocktesting.NewFakePassiveClock(now), Exists: func(context.Context, *Request) bool { return false }}
}
