// Package operator is gardener-operator: it brings up a garden from a Garden resource in the runtime cluster, and keeps it up.
package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/operator/garden/care"
	"gardener.cloud/gardener/internal/operator/webhook/certificate"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
)

// Name is the name of the command.
const Name = "gardener-operator"

// Environment variables of a process that runs outside of the runtime cluster.
const (
	// WebhookModeEnv says how the API server of the runtime cluster reaches the webhooks: "service", which is the default, by the Service of the
	// process; "url" or "url-service" at the address in WebhookURLEnv.
	WebhookModeEnv = "WEBHOOK_MODE"
	// WebhookURLEnv is the host of the webhooks, usually with a port.
	WebhookURLEnv = "WEBHOOK_URL"
)

// passTimeout is the end of one reconciliation. Flows have an end of their own, which is earlier.
const passTimeout = 30 * time.Minute

// Config is the type of the configuration file.
type Config = operatorconfigv1alpha1.OperatorConfiguration

// Component describes the process. The cluster of its manager is the runtime cluster. Clusters and controllers of the virtual garden come and go.
func Component() process.Component[Config] {
	// The certificate is there before the manager starts the server.
	server := certificate.NewServer(certificate.Values{Clock: clock.RealClock{}})
	virtual := virtualKinds()
	return process.Component[Config]{
		Name:   Name,
		Short:  "Bring up the garden, and keep it up",
		Config: configfile.Kind[Config]{AddToScheme: operatorconfigv1alpha1.AddToScheme, Validate: validate},
		Settings: func(c *Config) process.Settings {
			return process.Settings{
				Client: c.RuntimeClientConnection, LeaderElection: &c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		Features: systemcomponents.Features(), WithoutEffect: systemcomponents.WithoutEffect(),
		Kinds:    append(runtimeKinds(), virtual...),
		Protobuf: virtual,
		Options: func(c *Config, options *manager.Options) {
			options.Client.Cache = uncached()
			options.Cache.ByObject = cached()
			options.Controller.ReconciliationTimeout = passTimeout
			options.WebhookServer = crwebhook.NewServer(crwebhook.Options{
				Host: c.Server.Webhooks.BindAddress, Port: c.Server.Webhooks.Port,
				TLSOpts: []func(*tls.Config){func(t *tls.Config) { t.GetCertificate = server.GetCertificate }},
			})
		},
		Wire: func(ctx context.Context, p *process.Process, c *Config) error {
			host, err := webhookHost(os.Getenv(WebhookModeEnv), os.Getenv(WebhookURLEnv)) //nolint:forbidigo // the environment is read where the process is wired
			if err != nil {
				return err
			}
			server.Host = host
			return wire(ctx, p, c, server)
		},
	}
}

// webhookHost returns the host of the webhooks, which is empty if they are reached by a Service.
func webhookHost(mode, url string) (string, error) {
	switch mode {
	case "", "service":
		return "", nil
	case "url", "url-service":
		if url == "" {
			return "", fmt.Errorf("%s must be set if %s is %q", WebhookURLEnv, WebhookModeEnv, mode)
		}
		return url, nil
	}
	return "", fmt.Errorf("%s is %q, but must be service, url or url-service", WebhookModeEnv, mode)
}

// runtimeKinds are the API groups that are used in the runtime cluster, besides those of Kubernetes.
func runtimeKinds() []process.AddToScheme {
	return []process.AddToScheme{
		operatorv1alpha1.AddToScheme, apiextensionsv1.AddToScheme, resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme,
		druidv1alpha1.AddToScheme, gatewayv1.Install, apiregistrationv1.AddToScheme,
	}
}

// virtualKinds are the API groups that are used in the virtual garden, besides those of Kubernetes.
func virtualKinds() []process.AddToScheme {
	return []process.AddToScheme{
		corev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme, operationsv1alpha1.AddToScheme,
	}
}

// uncached are the kinds that clients read from the API server itself. Controllers that watch some of them read these from the cache.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &apiextensionsv1.CustomResourceDefinition{}}}
}

// cached restricts what is cached. The runtime cluster may be a seed too, with Secrets of many control planes, and schemas are large.
func cached() map[client.Object]cache.ByObject {
	garden := cache.ByObject{Namespaces: map[string]cache.Config{constants.GardenNamespace: {}}}
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:    garden,
		&corev1.ConfigMap{}: garden,
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: func(in any) (any, error) {
			if definition, ok := in.(*apiextensionsv1.CustomResourceDefinition); ok {
				definition.ManagedFields, definition.Annotations = nil, nil
				definition.Spec.Versions, definition.Spec.Conversion = nil, nil
			}
			return in, nil
		}},
	}
}

// Operator is what controllers are added with.
type Operator struct {
	*process.Process
	// Config is the configuration, with its defaults.
	Config *Config
	// RuntimeAPI reads the runtime cluster without a cache, and may watch.
	RuntimeAPI client.WithWatch
	// Gardener is this process, for the status of the Garden.
	Gardener corev1beta1.Gardener
	// Images are those of all components, and SystemImages those of system components.
	Images       imagevector.Vector
	SystemImages systemcomponents.Images
	// GardenletChart is the reference of the chart of gardenlets of this release.
	GardenletChart string
	// ImageVectorOverwrite and ComponentImageVectorOverwrites are the overwrite files, as text, for gardenlets. Empty for none.
	ImageVectorOverwrite, ComponentImageVectorOverwrites string
	// Flows are the metrics of flows.
	Flows *flow.Metrics
	// TerminateTLS is the feature gate IstioTLSTermination.
	TerminateTLS bool
	// Conditions are the metrics of the Garden, which outlive its controllers.
	Conditions *care.Metrics
	// Clock is for all controllers.
	Clock clock.WithTickerAndDelayedExecution
}

func wire(ctx context.Context, p *process.Process, c *Config, server *certificate.Server) error {
	runtimeAPI, err := client.NewWithWatch(p.GetConfig(), client.Options{Scheme: p.GetScheme(), HTTPClient: p.GetHTTPClient(), Mapper: p.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("connect to the runtime cluster: %w", err)
	}
	if err := checkVersion(ctx, runtimeAPI, process.Version(), p.GetLogger()); err != nil {
		return err
	}
	server.RuntimeAPI = runtimeAPI
	if err := server.Obtain(ctx); err != nil {
		return fmt.Errorf("obtain the certificate of the webhook server: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the hostname: %w", err)
	}
	conditions, err := care.NewMetrics(p.Metrics)
	if err != nil {
		return err
	}
	flows, err := flow.NewMetrics(Name, p.Metrics)
	if err != nil {
		return err
	}
	files := imagevector.OverwriteFilesFromEnv(os.Getenv) //nolint:forbidigo // the environment is read where the process is wired
	vector, _, err := files.Load()
	if err != nil {
		return err
	}
	charts, err := files.LoadCharts()
	if err != nil {
		return err
	}
	chart, err := charts.Find(imagevector.GardenletChart, imagevector.Query{})
	if err != nil {
		return err
	}
	images, components, err := files.Texts()
	if err != nil {
		return err
	}
	systemImages, err := systemcomponents.FindImages(vector, process.Version())
	if err != nil {
		return err
	}
	o := &Operator{
		Images: vector, SystemImages: systemImages, Flows: flows, GardenletChart: chart.WithDefaultTag(process.Version()).String(),
		ImageVectorOverwrite: images, ComponentImageVectorOverwrites: components,
		TerminateTLS: p.Gates.Enabled(systemcomponents.IstioTLSTermination),
		Process:      p, Config: c, RuntimeAPI: runtimeAPI, Conditions: conditions, Clock: clock.RealClock{},
		Gardener: corev1beta1.Gardener{ID: instance, Name: instance, Version: process.Version()},
	}
	return errors.Join(
		certificate.Add(p.Manager, server), o.addWebhooks(), o.AddControllers(ctx),
		p.AddReadyzCheck("webhook-server", p.GetWebhookServer().StartedChecker()),
	)
}

// NewManager returns a manager in the runtime cluster for controllers that run for a time only. Its cache is its own.
func (o *Operator) NewManager(ctx context.Context, name string) (manager.Manager, error) {
	return manager.New(o.GetConfig(), manager.Options{
		Scheme: o.GetScheme(), Logger: o.GetLogger().WithValues("controllers", name), MapperProvider: process.Mapper(ctx),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", LeaderElection: false,
		Client: client.Options{Cache: uncached()},
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cached()},
		// The same controllers are added again for the next Garden.
		Controller: controllerOptions(),
	})
}

// NewVirtual returns the virtual garden for a configuration that adds its token itself.
func (o *Operator) NewVirtual(ctx context.Context, config *rest.Config) (cluster.Cluster, error) {
	return cluster.New(rest.AddUserAgent(config, Name), func(options *cluster.Options) {
		options.Scheme = o.GetScheme()
		// gardener-apiserver may be about to start.
		options.MapperProvider = process.Mapper(ctx, virtualKinds()...)
		options.Logger = o.GetLogger().WithValues("cluster", "virtual")
		options.Client.Cache = uncached()
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	})
}
