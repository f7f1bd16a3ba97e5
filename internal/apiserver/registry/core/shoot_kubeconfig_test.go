package core

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/keyutil"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A member of a project requests kubeconfigs all the time. Keys take processors, so that some are left for requests of others only if keys wait.
func TestKubeconfigsLeaveProcessors(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1beta1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	const namespace, name = "garden-dev", "crazy-botany"
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	shoot.Status.AdvertisedAddresses = []corev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api.example.com"}}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shoot,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".ca-cluster"}, Data: map[string]string{"ca.crt": "x"}},
		&corev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".ca-client"}, Data: map[string][]byte{"ca.crt": certificatePEM, "ca.key": keyPEM}},
	).Build()
	signers := make(signers, 1)
	settings := Settings{
		GardenCache: garden, KubeAPI: garden, Authorizer: authorizerfactory.NewAlwaysDenyAuthorizer(), Clock: clocktesting.NewFakePassiveClock(time.Now()),
		AdminKubeconfigMaxExpiration: time.Hour, ViewerKubeconfigMaxExpiration: time.Hour,
	}
	for _, r := range []*kubeconfig{newAdminKubeconfig(settings, signers), newViewerKubeconfig(settings, signers)} {
		t.Run(r.subresource, func(t *testing.T) {
			create := func(timeout time.Duration) error {
				ctx, cancel := context.WithTimeout(request.WithUser(request.WithNamespace(t.Context(), namespace), &user.DefaultInfo{Name: "jane"}), timeout)
				defer cancel()
				object := r.newRequest()
				switch o := object.(type) {
				case *authenticationv1alpha1.AdminKubeconfigRequest:
					o.Spec.ExpirationSeconds = new(int64(600))
				case *authenticationv1alpha1.ViewerKubeconfigRequest:
					o.Spec.ExpirationSeconds = new(int64(600))
				}
				_, err := r.Create(ctx, name, object, func(context.Context, runtime.Object) error { return nil }, &metav1.CreateOptions{})
				return err
			}
			signers <- struct{}{}
			if err := create(50 * time.Millisecond); !apierrors.IsTooManyRequests(err) {
				t.Errorf("while a key is generated: %v, want it to wait", err)
			}
			<-signers
			for range 2 { // the first gives its signer back
				if err := create(time.Minute); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// gardenlogin, which users have as their kubectl plugin, takes a key only if it is one PEM block of this type, and a certificate only if it is one block.
func TestGardenloginAcceptsCredentials(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &shootCA{certificate: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}}, key: key}
	now := time.Now()
	certificatePEM, keyPEM, err := ca.sign(pkix.Name{CommonName: "jane"}, now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{"CERTIFICATE": certificatePEM, "RSA PRIVATE KEY": keyPEM} {
		block, rest := pem.Decode(data)
		if block == nil || block.Type != want || len(block.Headers) > 0 || len(rest) > 0 {
			t.Errorf("want one PEM block of type %q without headers, got %d bytes and %d more", want, len(data)-len(rest), len(rest))
		}
	}
	if _, err := tls.X509KeyPair(certificatePEM, keyPEM); err != nil {
		t.Errorf("kubectl cannot use the credentials: %v", err)
	}
}
