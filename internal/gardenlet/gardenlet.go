// Package gardenlet is the agent of a seed: it registers the seed in the garden, deploys the components of the seed, and reconciles extensions,
// backups and control planes in it.
package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/gardenlet/seed/lease"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	gardenletvalidation "gardener.cloud/gardener/internal/validation/gardenlet"
	"gardener.cloud/gardener/pkg/flow"
)

// Name is the name of the command.
const Name = "gardenlet"

// passTimeout is the end of one reconciliation. Flows have an end of their own, which is earlier.
const passTimeout = 10 * time.Minute

// Config is the type of the configuration file.
type Config = gardenletconfigv1alpha1.GardenletConfiguration

// Component describes the process. The cluster of its manager is the seed; the garden is added when the gardenlet has credentials for it.
func Component() process.Component[Config] {
	garden := gardenKinds()
	seed := []process.AddToScheme{
		apiextensionsv1.AddToScheme, resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, druidv1alpha1.AddToScheme,
		machinev1alpha1.AddToScheme, gatewayv1.Install, apiregistrationv1.AddToScheme,
	}
	return process.Component[Config]{
		Name:   Name,
		Short:  "Look after a seed and the control planes on it",
		Config: configfile.Kind[Config]{AddToScheme: gardenletconfigv1alpha1.AddToScheme, Validate: validate},
		Settings: func(c *Config) process.Settings {
			return process.Settings{
				Client: c.SeedClientConnection.ClientConnectionConfiguration, LeaderElection: c.LeaderElection,
				LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		Features: systemcomponents.Features(), WithoutEffect: systemcomponents.WithoutEffect(),
		Kinds:    append(garden, seed...),
		Protobuf: garden,
		Options: func(c *Config, options *manager.Options) {
			options.Client.Cache = uncached()
			options.Controller.CacheSyncTimeout = c.Controllers.CacheSyncTimeout.Duration
			options.Controller.ReconciliationTimeout = passTimeout
		},
		Wire: wire,
	}
}

// gardenKinds are the API groups that the gardenlet uses in the garden.
func gardenKinds() []process.AddToScheme {
	return []process.AddToScheme{
		corev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme,
	}
}

// validate validates the configuration of a running gardenlet. Unlike one in a template, it must have a named seed.
func validate(c *Config) field.ErrorList {
	errs := gardenletvalidation.ValidateGardenletConfiguration(c, nil, false)
	if c.SeedConfig == nil {
		return append(errs, field.Required(field.NewPath("seedConfig"), "must describe the seed"))
	}
	if c.SeedConfig.Name == "" {
		errs = append(errs, field.Required(field.NewPath("seedConfig", "metadata", "name"), "must name the seed"))
	}
	return append(errs, unsupported(c)...)
}

// wire adds the agent to the process.
func wire(_ context.Context, p *process.Process, c *Config) error {
	clk := clock.RealClock{}
	seedAPI, err := client.NewWithWatch(p.GetConfig(), client.Options{Scheme: p.GetScheme(), HTTPClient: p.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(p.GetConfig(), p.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the hostname: %w", err)
	}
	flows, err := flow.NewMetrics(Name, p.Metrics)
	if err != nil {
		return err
	}
	shoots, err := lifecycle.NewMetrics(p.Metrics)
	if err != nil {
		return err
	}
	vector, _, err := imagevector.OverwriteFilesFromEnv(os.Getenv).Load() //nolint:forbidigo // the environment is read where the process is wired
	if err != nil {
		return err
	}
	images, err := systemcomponents.FindImages(vector, process.Version())
	if err != nil {
		return err
	}
	gardener := corev1beta1.Gardener{ID: instance, Name: instance, Version: process.Version()}
	seed := c.Controllers.Seed
	period := time.Duration(*seed.LeaseResyncSeconds) * time.Second
	health := lease.NewHealth(clk, time.Duration(*seed.LeaseResyncMissThreshold)*period)
	return errors.Join(
		p.AddHealthzCheck("lease", health.Check),
		p.Add(&agent{
			Process: p, config: c, seedAPI: seedAPI, seedDiscovery: clientset.Discovery(), health: health, clock: clk,
			gardener: gardener, images: images, vector: vector, flows: flows, shoots: shoots,
			terminateTLS: p.Gates.Enabled(systemcomponents.IstioTLSTermination),
			credentials:  credentials.Values{SeedName: c.SeedConfig.Name, SeedAPI: seedAPI, Connection: c.GardenClientConnection, Clock: clk},
		}),
	)
}
