package machinecontroller

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/internal/machinecontroller/driver/hosts"
	"gardener.cloud/gardener/internal/machinecontroller/driver/local"
	"gardener.cloud/gardener/internal/machinecontroller/machine"
	"gardener.cloud/gardener/internal/machinecontroller/machineclass"
	"gardener.cloud/gardener/internal/machinecontroller/safety"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/pkg/destination"
)

const (
	// LocalName is the name of the command of the process for local machines.
	LocalName = Name + "-provider-local"
	// HostsName is the name of the command of the process for machines that are hosts.
	HostsName = Name + "-provider-hosts"
)

// provider is an infrastructure with a driver.
type provider struct {
	// name is the name of the command and of the container, driver the one in metrics.
	name, driver string
	// new returns the driver.
	new func(context.Context, *process.Process, *ProviderOptions) (driver.Driver, error)
	// kinds are those of the driver, and uncached its objects that are read from the API server.
	kinds    []process.AddToScheme
	uncached []client.Object
}

// localProvider has machines that are pods.
func localProvider(c *process.OtherCluster) provider {
	return provider{name: LocalName, driver: "local", new: func(ctx context.Context, p *process.Process, o *ProviderOptions) (driver.Driver, error) {
		config, err := c.Config()
		if err != nil {
			return nil, err
		}
		if config == nil {
			config = p.GetConfig()
		} else {
			process.SetConnection(o.connection(c.Kubeconfig))(config)
		}
		infrastructure, err := p.AddCluster("infrastructure", config, func(options *cluster.Options) {
			options.Scheme = p.GetScheme()
			options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {
				Namespaces: map[string]cache.Config{localv1alpha1.InfrastructureNamespace(o.Namespace): {}},
				Label:      labels.SelectorFromSet(localv1alpha1.MachineLabels()),
			}}
			options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}, &corev1.Secret{}}}
		})
		if err != nil {
			return nil, err
		}
		if err := c.Check(ctx, infrastructure.GetAPIReader()); err != nil {
			return nil, err
		}
		return local.New(p.GetClient(), infrastructure.GetClient(), infrastructure.GetCache(), o.Namespace), nil
	}}
}

// NewLocalCommand returns the command of the process for local machines.
func NewLocalCommand() *cobra.Command {
	o, c := NewProviderOptions(), &process.OtherCluster{Blocked: destination.Host}
	cmd := newCommand(LocalName, "Create and delete the machines of a cluster, which are pods", &o.Common, o.Validate, func(ctx context.Context, log logr.Logger) error {
		return localProvider(c).component().Run(ctx, o, log)
	})
	o.AddFlags(cmd.Flags())
	c.AddFlags(cmd.Flags())
	return cmd
}

// hostsProvider has machines that are hosts of provider-hosts.
func hostsProvider() provider {
	return provider{
		name: HostsName, driver: "hosts", kinds: []process.AddToScheme{hostsv1alpha1.AddToScheme}, uncached: []client.Object{&hostsv1alpha1.HostClaim{}},
		new: func(_ context.Context, p *process.Process, _ *ProviderOptions) (driver.Driver, error) {
			return hosts.New(p.GetClient(), p.GetCache()), nil
		},
	}
}

// NewHostsCommand returns the command of the process for machines that are hosts.
func NewHostsCommand() *cobra.Command {
	o := NewProviderOptions()
	cmd := newCommand(HostsName, "Create and delete the machines of a cluster, which are hosts", &o.Common, o.Validate, func(ctx context.Context, log logr.Logger) error {
		return hostsProvider().component().Run(ctx, o, log)
	})
	o.AddFlags(cmd.Flags())
	return cmd
}

// component describes the process.
func (v provider) component() process.Component[ProviderOptions] {
	return process.Component[ProviderOptions]{
		Name: v.name, Settings: func(o *ProviderOptions) process.Settings { return o.settings() }, Kinds: append(v.kinds, machinev1alpha1.AddToScheme),
		Options: func(o *ProviderOptions, options *manager.Options) {
			options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
			options.Client.Cache = &client.CacheOptions{DisableFor: append(v.uncached, &corev1.Pod{}, &corev1.Secret{})}
		},
		Wire: v.wire,
	}
}

// inPlaceUpdateTimeout is for machines whose pool sets none. The original has no flag for it either.
const inPlaceUpdateTimeout = 20 * time.Minute

// preserveTimeout is how long machines are kept for inspection whose pool sets nothing else.
const preserveTimeout = 96 * time.Hour

func (v provider) wire(ctx context.Context, p *process.Process, o *ProviderOptions) error {
	target, config, err := o.addTarget(p)
	if err != nil {
		return err
	}
	realClock := clock.RealClock{}
	reachability, err := safety.NewReachability(config, o.StatusCheckPeriod, o.StatusCheckTimeout, realClock)
	if err != nil {
		return err
	}
	uncounted, err := v.new(ctx, p, o)
	if err != nil {
		return err
	}
	d, err := newCounted(uncounted, v.driver, p.Metrics)
	if err != nil {
		return err
	}
	return errors.Join(
		p.Add(reachability),
		p.Add(&safety.Orphans{
			ControlAPI: p.GetAPIReader(), TargetCache: target.GetClient(), Namespace: o.Namespace, Driver: d, Credentials: machine.Credentials,
			Period: o.OrphansPeriod, Clock: realClock,
		}),
		p.Metrics.Register(&machineCollector{controlCache: p.GetClient(), namespace: o.Namespace, frozen: func() bool {
			_, reachable := reachability.State()
			return !reachable
		}}),
		machine.Add(p, machine.Values{
			Target: target, Driver: d, PVDetachTimeout: o.PVDetachTimeout, MaxReplaced: o.MaxReplaced, TokenGroups: o.TokenGroups,
			Limits: machine.Limits{
				Creation: o.CreationTimeout, Health: o.HealthTimeout, Drain: o.DrainTimeout, InPlaceUpdate: inPlaceUpdateTimeout,
				Preserve: preserveTimeout, MaxEvictRetries: o.MaxEvictRetries, NodeConditions: o.NodeConditions,
			},
			Reachable: reachability.State, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock,
		}),
		machineclass.Add(p, machineclass.Values{ConcurrentSyncs: o.ConcurrentSyncs}),
	)
}
