// Package resourcemanager is gardener-resource-manager, which applies ManagedResources to a cluster, and has controllers and webhooks for
// the workload there.
package resourcemanager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/networkpolicy"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/resourcemanager/csrapprover"
	"gardener.cloud/gardener/internal/resourcemanager/garbagecollector"
	"gardener.cloud/gardener/internal/resourcemanager/health"
	"gardener.cloud/gardener/internal/resourcemanager/managedresource"
	"gardener.cloud/gardener/internal/resourcemanager/namespace/availability"
	"gardener.cloud/gardener/internal/resourcemanager/node/agentdelay"
	"gardener.cloud/gardener/internal/resourcemanager/node/criticalcomponents"
	"gardener.cloud/gardener/internal/resourcemanager/node/hostspread"
	"gardener.cloud/gardener/internal/resourcemanager/tokeninvalidator"
	"gardener.cloud/gardener/internal/resourcemanager/webhook"
	"gardener.cloud/gardener/internal/tokenrequestor"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "gardener-resource-manager"

const (
	// passTimeout limits a reconciliation. The controllers of ManagedResources have shorter limits.
	passTimeout = 3 * time.Minute
	// identityTimeout limits reading the identity of the source cluster.
	identityTimeout = 30 * time.Second
)

// Values of clusterID for the identity in the source cluster.
const (
	identityOfCluster          = "<cluster>"
	identityOfClusterIfPresent = "<default>"
)

type config = resourcemanagerconfigv1alpha1.ResourceManagerConfiguration

// Component describes the process.
func Component() process.Component[config] {
	return process.Component[config]{
		Name:   Name,
		Short:  "Keep the objects of a cluster as ManagedResources say",
		Config: configfile.Kind[config]{AddToScheme: resourcemanagerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateResourceManager},
		Settings: func(c *config) process.Settings {
			return process.Settings{
				Client: c.SourceClientConnection.ClientConnectionConfiguration, LeaderElection: &c.LeaderElection,
				LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics), Debugging: c.Debugging,
			}
		},
		Kinds: []process.AddToScheme{
			resourcesv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		},
		Options: func(c *config, options *manager.Options) {
			limit(&options.Cache, &c.SourceClientConnection)
			options.Controller.CacheSyncTimeout = c.Controllers.CacheSyncTimeout.Duration
			options.Controller.ReconciliationTimeout = passTimeout
			// The server starts with the first webhook.
			options.WebhookServer = crwebhook.NewServer(crwebhook.Options{
				Host: c.Server.Webhooks.BindAddress, Port: c.Server.Webhooks.Port, CertDir: c.Server.Webhooks.TLS.ServerCertDir,
			})
		},
		Wire: wire,
	}
}

// limit restricts a cache to the namespaces of a connection.
func limit(options *cache.Options, connection *resourcemanagerconfigv1alpha1.ClientConnection) {
	options.SyncPeriod = &connection.CacheResyncPeriod.Duration
	for _, namespace := range connection.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
}

func wire(ctx context.Context, p *process.Process, c *config) error {
	if err := supported(c); err != nil {
		return err
	}
	target, err := targetOf(p, c)
	if err != nil {
		return err
	}
	identity, err := identityOf(ctx, p.GetAPIReader(), *c.Controllers.ClusterID)
	if err != nil {
		return err
	}
	return addControllers(ctx, p.Manager, target, identity, c)
}

// supported refuses settings of the configuration that are not implemented.
func supported(c *config) error {
	if c.Controllers.IstioClusterConfiguration.Enabled {
		return field.Forbidden(field.NewPath("controllers", "istioClusterConfiguration", "enabled"), "not supported")
	}
	return nil
}

// targetOf returns the cluster that objects are applied to. It may be the source cluster.
func targetOf(p *process.Process, c *config) (cluster.Cluster, error) {
	if c.TargetClientConnection == nil {
		return p.Manager, nil
	}
	clientConfig, err := process.ClientConfig(c.TargetClientConnection.ClientConnectionConfiguration)
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	return p.AddCluster("target", clientConfig, func(o *cluster.Options) {
		o.Scheme = p.GetScheme()
		limit(&o.Cache, c.TargetClientConnection)
	})
}

// identityOf returns the identity of the source cluster for the origin of objects, as configured.
func identityOf(ctx context.Context, source client.Reader, want string) (string, error) {
	if want != identityOfCluster && want != identityOfClusterIfPresent {
		return want, nil
	}
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	configMap := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}
	err := source.Get(ctx, key, configMap)
	switch {
	case apierrors.IsNotFound(err) && want == identityOfClusterIfPresent:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the identity of the source cluster: %w", err)
	}
	identity := configMap.Data[constants.ClusterIdentity]
	if identity == "" && want == identityOfCluster {
		return "", fmt.Errorf("read the identity of the source cluster: ConfigMap %s has no key %q", key, constants.ClusterIdentity)
	}
	return identity, nil
}

// addControllers adds the controllers that are enabled.
func addControllers(ctx context.Context, mgr manager.Manager, target cluster.Cluster, identity string, c *config) error {
	var targetNamespaces []string
	if c.TargetClientConnection != nil {
		targetNamespaces = c.TargetClientConnection.Namespaces
	} else {
		targetNamespaces = c.SourceClientConnection.Namespaces
	}
	managedBy := *c.Controllers.ManagedResource.ManagedByLabelValue
	managed, err := managedresource.NewCache(target, managedBy, targetNamespaces)
	if err != nil {
		return err
	}
	if err := mgr.Add(managed); err != nil {
		return err
	}
	for _, controller := range []struct {
		name    string
		enabled bool
		add     func() error
	}{
		{"managedResource", true, func() error {
			return managedresource.Add(ctx, mgr, target, managed, managedresource.Values{
				Class: *c.Controllers.ResourceClass, Concurrency: *c.Controllers.ManagedResource.ConcurrentSyncs,
				SyncPeriod: c.Controllers.ManagedResource.SyncPeriod.Duration, AlwaysUpdate: *c.Controllers.ManagedResource.AlwaysUpdate,
				ManagedBy: managedBy, ClusterID: identity, CollectsGarbage: c.Controllers.GarbageCollector.Enabled,
			})
		}},
		{"health", true, func() error {
			return health.Add(mgr, target, managed, health.Values{
				Class: *c.Controllers.ResourceClass, Concurrency: *c.Controllers.Health.ConcurrentSyncs,
				SyncPeriod: c.Controllers.Health.SyncPeriod.Duration, ClusterID: identity,
			})
		}},
		{"garbageCollector", c.Controllers.GarbageCollector.Enabled, func() error {
			return garbagecollector.Add(mgr, target, garbagecollector.Values{
				SyncPeriod: c.Controllers.GarbageCollector.SyncPeriod.Duration, Namespaces: targetNamespaces,
			})
		}},
		{"tokenRequestor", c.Controllers.TokenRequestor.Enabled, func() error {
			return tokenrequestor.Add(mgr, mgr, target, tokenrequestor.Values{
				Class: resourcesv1alpha1.ResourceManagerClassShoot, Concurrency: *c.Controllers.TokenRequestor.ConcurrentSyncs,
			})
		}},
		{"tokenInvalidator", c.Controllers.TokenInvalidator.Enabled, func() error {
			return tokeninvalidator.Add(mgr, target, *c.Controllers.TokenInvalidator.ConcurrentSyncs)
		}},
		{"networkPolicy", c.Controllers.NetworkPolicy.Enabled, func() error {
			values := networkpolicy.Values{
				NamespaceSelectors: c.Controllers.NetworkPolicy.NamespaceSelectors, Concurrency: *c.Controllers.NetworkPolicy.ConcurrentSyncs,
				FieldOwner: Name,
			}
			if selector := c.Controllers.NetworkPolicy.IngressControllerSelector; selector != nil {
				values.IngressController = (*networkpolicy.IngressController)(selector)
			}
			return networkpolicy.Add(ctx, mgr, target, values)
		}},
		{"csrApprover", c.Controllers.CSRApprover.Enabled, func() error {
			return csrapprover.Add(mgr, mgr, target, ptr.Deref(c.Controllers.CSRApprover.MachineNamespace, ""), *c.Controllers.CSRApprover.ConcurrentSyncs)
		}},
		{"nodeCriticalComponents", c.Controllers.NodeCriticalComponents.Enabled, func() error {
			settings := c.Controllers.NodeCriticalComponents
			return criticalcomponents.Add(mgr, target, *settings.ConcurrentSyncs, settings.Backoff.Duration)
		}},
		{"nodeAgentReconciliationDelay", c.Controllers.NodeAgentReconciliationDelay.Enabled, func() error {
			settings := c.Controllers.NodeAgentReconciliationDelay
			return agentdelay.Add(mgr, target, settings.MinDelay.Duration, settings.MaxDelay.Duration)
		}},
		{"nodeHighAvailabilityConfig", c.Webhooks.HighAvailabilityConfig.Enabled, func() error { return hostspread.Add(mgr, target) }},
		{"namespaceHighAvailabilityConfig", c.Webhooks.HighAvailabilityConfig.Enabled, func() error { return availability.Add(mgr, target, managedBy) }},
	} {
		if !controller.enabled {
			continue
		}
		if err := controller.add(); err != nil {
			return fmt.Errorf("add controller %s: %w", controller.name, err)
		}
	}
	webhook.Add(mgr, target, &c.Webhooks)
	return nil
}
