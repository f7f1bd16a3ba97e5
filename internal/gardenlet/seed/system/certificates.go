package system

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// caValidity is the validity of the seed's CA certificate, which is renewed in time.
	caValidity = 10 * 365 * 24 * time.Hour
	// serverValidity is the validity of server certificates in the seed, which are renewed in time.
	serverValidity = 90 * 24 * time.Hour
)

// certificates are what one run of the flow has for gardener-resource-manager.
type certificates struct {
	manager *secrets.Manager
	// caBundle has the CA certificates of the seed, as PEM.
	caBundle []byte
	// resourceManager is the name of the Secret with the server certificate.
	resourceManager string
}

// createCertificates creates the CA of the seed, and the server certificates of its system components.
func (s *run) createCertificates(ctx context.Context) (systemcomponents.Certificates, error) {
	c := systemcomponents.Certificates{}
	manager, err := secrets.New(ctx, secrets.Values{Client: s.SeedAPI, Namespace: constants.GardenNamespace, Identity: fieldManager})
	if err != nil {
		return c, err
	}
	if _, err := manager.Generate(ctx, &secrets.CertificateAuthority{
		Name: constants.SecretNameCASeed, CommonName: "kubernetes", Validity: caValidity,
	}, secrets.RenewCA(), secrets.KeepOld()); err != nil {
		return c, err
	}
	bundle, ok := manager.Get(constants.SecretNameCASeed, secrets.Bundle)
	if !ok {
		return c, fmt.Errorf("CA %q has no bundle", constants.SecretNameCASeed)
	}
	server, err := serverCertificate(ctx, manager, resourcemanager.Name, resourcemanager.ServerNames(instance.Shoot, constants.GardenNamespace))
	if err != nil {
		return c, err
	}
	s.certificates = certificates{manager: manager, caBundle: bundle.Data[secrets.DataKeyCertificateBundle], resourceManager: server.Name}
	c.CABundle = s.certificates.caBundle
	if workload.Autoscaled(s.seed) {
		server, err := serverCertificate(ctx, manager, verticalpodautoscaler.WebhookService, verticalpodautoscaler.ServerNames(constants.GardenNamespace))
		if err != nil {
			return c, err
		}
		c.Autoscaler = server.Name
	}
	return c, nil
}

// serverCertificate creates the certificate of a server in the seed, signed by the CA of the seed.
func serverCertificate(ctx context.Context, manager *secrets.Manager, name string, hosts []string) (*corev1.Secret, error) {
	return manager.Generate(ctx, &secrets.Certificate{
		Name: name + "-server", CommonName: name, DNSNames: hosts, Usage: secrets.ServerCert, WithoutCA: true, Validity: serverValidity,
	}, secrets.SignedBy(constants.SecretNameCASeed))
}

// deleteUnusedSecrets deletes the Secrets with certificates that this run does not use.
func (s *run) deleteUnusedSecrets(ctx context.Context) error {
	return s.certificates.manager.Cleanup(ctx)
}
