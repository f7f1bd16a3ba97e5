package system

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// caValidity is the validity of the seed's CA certificate, which is renewed in time.
	caValidity = 10 * 365 * 24 * time.Hour
	// serverValidity is the validity of server certificates in the seed, which are renewed in time.
	serverValidity = 90 * 24 * time.Hour
)

// certificates are what one run of the flow has for the components with webhooks.
type certificates struct {
	manager *secrets.Manager
	// caBundle has the CA certificates of the seed, as PEM.
	caBundle []byte
	// resourceManager and vpa are the names of the Secrets with the server certificates of gardener-resource-manager and of
	// vpa-admission-controller.
	resourceManager, vpa string
}

// createCertificates creates the CA of the seed, and the server certificates of this flow.
func (s *run) createCertificates(ctx context.Context) error {
	manager, err := secrets.New(ctx, secrets.Values{Client: s.SeedAPI, Namespace: constants.GardenNamespace, Identity: fieldManager})
	if err != nil {
		return err
	}
	if _, err := manager.Generate(ctx, &secrets.CertificateAuthority{
		Name: constants.SecretNameCASeed, CommonName: "kubernetes", Validity: caValidity,
	}, secrets.RenewCA(), secrets.KeepOld()); err != nil {
		return err
	}
	bundle, ok := manager.Get(constants.SecretNameCASeed, secrets.Bundle)
	if !ok {
		return fmt.Errorf("CA %q has no bundle", constants.SecretNameCASeed)
	}
	c := certificates{manager: manager, caBundle: bundle.Data[secrets.DataKeyCertificateBundle]}
	server, err := serverCertificate(ctx, manager, resourcemanager.Name, resourcemanager.ServerNames(constants.GardenNamespace))
	if err != nil {
		return err
	}
	c.resourceManager = server.Name
	if workload.Autoscaled(s.seed) {
		server, err := serverCertificate(ctx, manager, verticalpodautoscaler.WebhookService, verticalpodautoscaler.ServerNames(constants.GardenNamespace))
		if err != nil {
			return err
		}
		c.vpa = server.Name
	}
	s.certificates = c
	return nil
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
