// Package admissioncontroller is gardener-admission-controller: the webhooks of the garden. It authorizes requests of gardenlets, and
// checks and changes objects of Kubernetes that belong to projects.
package admissioncontroller

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer"
	"gardener.cloud/gardener/internal/authorizer/feed"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "gardener-admission-controller"

// KubeconfigEnv is the environment variable with the path of a kubeconfig that overrides that of the configuration.
const KubeconfigEnv = "KUBECONFIG"

type config = admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration

// Component returns the process. All replicas are active. A kubeconfig overrides that of the configuration if it is not empty.
func Component(kubeconfig string) process.Component[config] {
	kinds := []process.AddToScheme{
		gardencorev1.AddToScheme, corev1beta1.AddToScheme, operationsv1alpha1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
	}
	return process.Component[config]{
		Name:   Name,
		Short:  "Authorize gardenlets, and admit objects of projects",
		Config: configfile.Kind[config]{AddToScheme: admissioncontrollerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateAdmissionController},
		Settings: func(c *config) process.Settings {
			connection := c.GardenClientConnection
			connection.Kubeconfig = cmp.Or(kubeconfig, connection.Kubeconfig)
			return process.Settings{
				Client: connection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics), Debugging: c.Debugging,
			}
		},
		Kinds:    kinds,
		Protobuf: kinds,
		Options: func(c *config, options *manager.Options) {
			options.Cache.ByObject = feed.ByObject()
			server := c.Server.Webhooks
			options.WebhookServer = crwebhook.NewServer(crwebhook.Options{
				Host: server.BindAddress, Port: server.Port, CertDir: server.TLS.ServerCertDir,
				// Certificates of clients are checked where they are necessary: requests for admission come without one.
				TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }},
			})
		},
		Wire: wire,
	}
}

func wire(ctx context.Context, p *process.Process, c *config) error {
	metrics := authorizer.NewMetrics(p.Metrics)
	g := graph.New(clock.RealClock{})
	fed, err := feed.Start(ctx, p.GetCache(), g, graph.Watched(), metrics.Updated)
	if err != nil {
		return err
	}
	values := authorizer.Values{
		Graph: g, Complete: fed.HasSynced, Checked: metrics.Checked,
		Live: authorizer.Garden{API: p.GetAPIReader(), Mapper: p.GetRESTMapper()},
	}
	if err := addAuthorizers(p, c, values); err != nil {
		return fmt.Errorf("add authorizers: %w", err)
	}
	if err := addWebhooks(ctx, p, c); err != nil {
		return fmt.Errorf("add admission webhooks: %w", err)
	}
	return errors.Join(
		p.AddReadyzCheck("graph", func(*http.Request) error {
			if !fed.HasSynced() {
				return errors.New("the graph of the authorizers does not have all objects yet")
			}
			return nil
		}),
		p.AddReadyzCheck("webhook-server", p.GetWebhookServer().StartedChecker()),
	)
}
