package lifecycle

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A certificate for system:masters cannot be revoked but by a rotation of the CA. What the gardenlet works with expires soon, and no Secret has
// one that an attacker who reads the Secrets of a control plane could use later.
func TestNoLastingAdministratorOfTheShoot(t *testing.T) {
	w, l := complete(workers), newLandscape(t)
	connect := l.Connect
	var validity []time.Duration
	l.Connect = func(config *rest.Config) (client.WithWatch, error) {
		validity = append(validity, time.Until(certificate(t, config.CertData).NotAfter))
		return connect(config)
	}
	l.run(t, (*reconciler).reconcileFlow, w, -1)
	if len(validity) == 0 || slices.Max(validity) > time.Hour {
		t.Errorf("the certificates of the gardenlet are valid for %v", validity)
	}

	list := &corev1.SecretList{}
	if err := l.seed.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, secret := range list.Items {
		for key, value := range secret.Data {
			data := value
			if config, err := clientcmd.RESTConfigFromKubeConfig(value); err == nil {
				data = config.CertData
			}
			if c := certificate(t, data); c != nil && slices.Contains(c.Subject.Organization, "system:masters") {
				t.Errorf("Secret %s has in %s a certificate for system:masters, valid until %s", secret.Name, key, c.NotAfter)
			}
		}
	}
}

// certificate returns the first certificate in a PEM, or nil if it has none.
func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
