package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/util/cert"

	"gardener.cloud/gardener/internal/admissioncontroller/webhook/authorization"
)

// review asks an authorizer through its webhook, one request after the other: encoding, TLS with client certificates, HTTP and the decision.
func review(ctx context.Context, a kauthorizer.Authorizer, n int, request func(*rand.Rand) kauthorizer.Attributes) ([]time.Duration, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "kube-apiserver"}, key)
	if err != nil {
		return nil, err
	}
	cas := x509.NewCertPool()
	cas.AddCert(certificate)
	server := httptest.NewUnstartedServer(authorization.RequireCertificate(&authorization.Handler{Authorizer: a, Log: logr.Discard()},
		func() (x509.VerifyOptions, bool) {
			return x509.VerifyOptions{Roots: cas, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}, true
		}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}}

	took := make([]time.Duration, n)
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // not for secrets
	for i := range took {
		start := time.Now()
		if err := ask(ctx, client, server.URL, request(r)); err != nil {
			return nil, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took, nil
}

func ask(ctx context.Context, client *http.Client, url string, a kauthorizer.Attributes) error {
	body, err := json.Marshal(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.GetUser().GetName(), Groups: a.GetUser().GetGroups(), ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: "v1", Resource: a.GetResource(), Subresource: a.GetSubresource(),
				Namespace: a.GetNamespace(), Name: a.GetName(),
			},
		},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	review := authorizationv1.SubjectAccessReview{}
	if err := json.Unmarshal(answer, &review); err != nil || review.Status.EvaluationError != "" {
		return fmt.Errorf("status %s, answer %s: %w", response.Status, answer, err)
	}
	return nil
}
