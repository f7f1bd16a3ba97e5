// Package local is provider-local, the extension for clusters whose machines, DNS names and backups are on one computer. It reconciles the
// resources of extensions.gardener.cloud with the type local, Networks with the type flannel, and ContainerRuntimes with the type crun.
package local

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/provider/local/dnsserver"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
	"gardener.cloud/gardener/pkg/extension/worker"
)

const (
	// Name is the name of the command and of the extension.
	Name = "provider-local"
	// Type is the type of its extension resources.
	Type = "local"
)

// Component describes provider-local.
func Component() process.Component[providerlocalconfigv1alpha1.ProviderLocalConfiguration] {
	return process.Component[providerlocalconfigv1alpha1.ProviderLocalConfiguration]{
		Name:  Name,
		Short: "Fulfil extension resources with what is on this computer",
		Config: configfile.Kind[providerlocalconfigv1alpha1.ProviderLocalConfiguration]{
			AddToScheme: providerlocalconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateProviderLocal,
		},
		Settings: func(c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) process.Settings {
			return process.Settings{
				Client: *c.ClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics), Debugging: c.Debugging,
			}
		},
		Flags: func(flags *pflag.FlagSet) func(*providerlocalconfigv1alpha1.ProviderLocalConfiguration) {
			const name = "extension-classes"
			classes := flags.StringSlice(name, nil, "values of spec.class of the extension resources that it reconciles: shoot, seed or garden (default those of the configuration file)")
			return func(c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) {
				if !flags.Changed(name) {
					return
				}
				c.ExtensionClasses = nil
				for _, class := range *classes {
					c.ExtensionClasses = append(c.ExtensionClasses, extensionsv1alpha1.ExtensionClass(class))
				}
			}
		},
		Kinds: []process.AddToScheme{extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme},
		Options: func(_ *providerlocalconfigv1alpha1.ProviderLocalConfiguration, o *manager.Options) {
			// Secrets are read by name, from the API server.
			o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Namespace{}}}
			// Nothing else than bastions reads pods from the cache. Services are those of bastions and of exposures.
			loadBalancers, _ := labels.Parse("app in (bastion, exposure)") // TestCacheOfServices parses it
			o.Cache.ByObject = map[client.Object]cache.ByObject{
				&corev1.Pod{}:     {Label: labels.SelectorFromSet(localv1alpha1.BastionLabels())},
				&corev1.Service{}: {Label: loadBalancers},
			}
		},
		Wire: Wire,
	}
}

// Wire adds the controllers and the DNS server to a process. Those of kinds that only control planes of shoots have are left out if the process does
// not reconcile the resources of shoots: then it has no permissions for them, and some of their kinds may not be defined.
func Wire(ctx context.Context, p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	return WireWith(ctx, p, c, destination.Host)
}

// WireWith is Wire with another function than destination.Host, which returns why not to connect to a host that the kubeconfig of a shoot names, or "".
func WireWith(
	ctx context.Context, p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration, blocked func(host string) string,
) error {
	zones := dnsserver.New(c.DNS.Zones)
	if err := feed(ctx, p.GetCache(), zones); err != nil {
		return err
	}
	server, err := dnsserver.Listen(ctx, net.JoinHostPort(c.DNS.BindAddress, strconv.Itoa(c.DNS.Port)), zones)
	if err != nil {
		return err
	}
	classes := c.ExtensionClasses
	err = errors.Join(
		p.Add(server),
		extension.AddHeartbeat(p, Name, c.Namespace),
		add(p, classes, &dnsRecords{zones: zones}),
		add(p, classes, &backupBuckets{p.GetClient(), c.Backup.Directory, c.Backup.HostPath, c.Namespace}),
		add(p, classes, &generic.BackupEntry{Client: p.GetClient(), Owner: Name, DeleteBackups: deleteBackups(c.Backup.Directory)}),
	)
	if err != nil || !slices.Contains(classes, extensionsv1alpha1.ExtensionClassShoot) {
		return err
	}
	places := &places{p.GetClient(), p.GetAPIReader(), connectTo(p.GetScheme(), blocked)}
	return errors.Join(
		addWebhooks(p, places, c),
		addInfrastructures(p, places, c),
		addControlPlanes(p, places, c),
		addNetworks(p, c),
		addContainerRuntimes(p, c),
		add(p, classes, &operatingSystemConfigs{generic.OperatingSystemConfig{Client: p.GetClient(), Owner: Name}}),
		addWorkers(p, places, c),
		addBastions(p, places, c),
		addExposures(p, places, c),
		addExtensions(p, c),
	)
}

// add adds the controller of a kind.
func add[T extensionsv1alpha1.Object](p *process.Process, classes []extensionsv1alpha1.ExtensionClass, actuator extension.Actuator[T]) error {
	return extension.Add(p, options(classes, actuator))
}

// addNetworks adds the controller of Networks, which have another type.
func addNetworks(p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.Network](&networks{p.GetClient(), c.Images.Flannel}))
	o.Types = []string{networkType}
	o.Watch = extension.WatchManaged(networkResource)
	return errors.Join(
		extension.Add(p, o),
		extension.AddHealthChecks(p, extension.HealthOptions[*extensionsv1alpha1.Network]{
			Name: o.Name, Types: o.Types, Classes: o.Classes,
			Checks: []extension.HealthCheck{extension.CheckManagedResource(corev1beta1.ShootSystemComponentsHealthy, networkResource)},
		}),
	)
}

// addContainerRuntimes adds the controller of ContainerRuntimes, which have another type.
func addContainerRuntimes(p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.ContainerRuntime](newContainerRuntimes(p.GetClient(), c.Images.Crun)))
	o.Types = []string{runtimeType}
	o.Watch = extension.WatchManaged() // their names have those of pools
	return errors.Join(
		extension.Add(p, o),
		extension.AddHealthChecks(p, extension.HealthOptions[*extensionsv1alpha1.ContainerRuntime]{
			Name: o.Name, Types: o.Types, Classes: o.Classes,
			Checks: []extension.HealthCheck{generic.CheckContainerRuntime(corev1beta1.ShootSystemComponentsHealthy)},
		}),
	)
}

// addControlPlanes adds the controller of ControlPlanes, which also watches their ManagedResources.
func addControlPlanes(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.ControlPlane](newControlPlanes(places, c.Images)))
	o.Watch = extension.WatchManaged(generic.ControlPlaneResource, generic.ShootResource, generic.StorageClassesResource)
	return extension.Add(p, o)
}

// addInfrastructures adds the controller of Infrastructures, which also watches namespaces.
func addInfrastructures(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.Infrastructure](&infrastructures{places, c.Machines}))
	o.Watch = watchNamespaces
	return extension.Add(p, o)
}

// addWorkers adds the controller of Workers, which also watches machines.
func addWorkers(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	actuator := newWorkers(worker.Values{Client: p.GetClient(), Reader: p.GetAPIReader(), Clock: clock.RealClock{}}, places, c.Machines.Registries)
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.Worker](actuator))
	o.Watch = worker.Watch
	return errors.Join(extension.Add(p, o), extension.AddInPlaceStatus(p, Name, o.Types))
}

// addBastions adds the controller of Bastions, which also watches their pods and Services.
func addBastions(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	actuator := &bastions{places, clock.RealClock{}}
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.Bastion](actuator))
	o.Watch, o.Repair = watchBastions, actuator.Repair
	return extension.Add(p, o)
}

// addExposures adds the controller of SelfHostedShootExposures, which also watches their Services.
func addExposures(p *process.Process, places *places, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.SelfHostedShootExposure](&exposures{places}))
	o.Watch = watchExposures
	return extension.Add(p, o)
}

// addExtensions adds the controller of Extensions, which have other types.
func addExtensions(p *process.Process, c *providerlocalconfigv1alpha1.ProviderLocalConfiguration) error {
	o := options(c.ExtensionClasses, extension.Actuator[*extensionsv1alpha1.Extension](recorder{}))
	o.Types = extensionTypes
	return extension.Add(p, o)
}

func options[T extensionsv1alpha1.Object](classes []extensionsv1alpha1.ExtensionClass, actuator extension.Actuator[T]) extension.Options[T] {
	return extension.Options[T]{Name: Name, Types: []string{Type}, Classes: classes, Actuator: actuator}
}
