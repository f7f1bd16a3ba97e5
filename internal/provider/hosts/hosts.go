// Package hosts is provider-hosts, the extension for machines that exist: servers of an operator, which an inventory of Hosts in the seed describes. It
// reconciles Hosts and HostClaims, AddressPools and AddressClaims; Infrastructures, ControlPlanes and Workers of the type hosts; OperatingSystemConfigs for
// Debian and Ubuntu; DNSRecords by dynamic updates (RFC 2136); and BackupBuckets and BackupEntries in stores with the API of S3. It is written with the library
// for extensions only.
package hosts

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
	"gardener.cloud/gardener/pkg/extension/options"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
	"gardener.cloud/gardener/pkg/extension/worker"
)

const (
	// Name is the name of the command and of the extension.
	Name = "provider-hosts"
	// Type is the type of its Infrastructures, ControlPlanes and Workers.
	Type = "hosts"
	// The names of the controllers, for --controllers and --disable-controllers.
	infrastructureController, controlPlaneController, workerController, osController = "infrastructure", "controlplane", "worker", "operatingsystemconfig"
	dnsRecordController, bucketController, entryController, healthController         = "dnsrecord", "backupbucket", "backupentry", "healthcheck"
	hostController                                                                   = "host"
)

// operatingSystems are the types of OperatingSystemConfigs.
var operatingSystems = []string{"debian", "ubuntu"}

// NewOptions returns the options that all extensions have.
func NewOptions() *options.Options {
	return options.New(Name, infrastructureController, controlPlaneController, workerController, osController, dnsRecordController, bucketController,
		entryController, healthController, hostController)
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o, image := NewOptions(), ""
	cmd := &cobra.Command{
		Use: Name, Short: "Fulfil extension resources with servers that exist", Args: cobra.NoArgs, SilenceUsage: true,
		Example: "  " + Name + " --image=registry.example.com/gardener:v1 --webhook-config-namespace=extension-provider-hosts",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if image == "" {
				return errors.New("--image: required")
			}
			log := o.Logger(cmd.ErrOrStderr())
			logf.SetLogger(log)
			config, err := o.RESTConfig()
			if err != nil {
				return err
			}
			scheme, err := NewScheme()
			if err != nil {
				return err
			}
			mgr, err := o.NewManager(config, scheme, log)
			if err != nil {
				return err
			}
			if err := AddControllers(mgr, o, image); err != nil {
				return err
			}
			return mgr.Start(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&image, "image", image, "image with all processes of Gardener, for the driver of machines")
	return cmd
}

// NewScheme returns the kinds that the extension reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme),
		machinev1alpha1.AddToScheme(scheme), hostsv1alpha1.AddToScheme(scheme))
}

// AddControllers adds all that the extension does to a manager. The image is the one with all processes of Gardener, whose driver runs beside
// machine-controller-managers.
func AddControllers(mgr manager.Manager, o *options.Options, image string) error {
	machines := &workers{worker.New(worker.Values{
		Name: Name, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Delegate: delegate{},
	})}
	return errors.Join(
		addHosts(mgr, o),
		options.Add(mgr, o, infrastructureController, extension.Options[*extensionsv1alpha1.Infrastructure]{
			Types: []string{Type}, Actuator: infrastructures{},
		}),
		options.Add(mgr, o, controlPlaneController, extension.Options[*extensionsv1alpha1.ControlPlane]{
			Types: []string{Type}, Watch: extension.WatchManaged(generic.ControlPlaneResource),
			Actuator: &generic.ControlPlane{
				Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Owner: Name, Components: renderComponents(image), Shoot: renderShoot(image),
			},
		}),
		options.Add(mgr, o, workerController, extension.Options[*extensionsv1alpha1.Worker]{Types: []string{Type}, Actuator: machines, Watch: worker.Watch}),
		options.AddHealthChecks(mgr, o, healthController, extension.HealthOptions[*extensionsv1alpha1.Worker]{
			Types: []string{Type}, Checks: []extension.HealthCheck{
				extension.CheckNodes(), extension.CheckObject(corev1beta1.ShootControlPlaneHealthy, &appsv1.Deployment{}, "machine-controller-manager"),
			},
		}),
		options.Add(mgr, o, osController, extension.Options[*extensionsv1alpha1.OperatingSystemConfig]{
			Types: operatingSystems, Actuator: &generic.OperatingSystemConfig{Client: mgr.GetClient(), Owner: Name, Prologue: prologue},
		}),
		options.Add(mgr, o, dnsRecordController, extension.Options[*extensionsv1alpha1.DNSRecord]{
			Types: []string{dnsType}, Actuator: &dnsRecords{mgr.GetClient(), destination.Outside},
		}),
		options.Add(mgr, o, bucketController, extension.Options[*extensionsv1alpha1.BackupBucket]{
			Types: []string{storeType}, Actuator: &backupBuckets{stores{mgr.GetClient()}},
		}),
		options.Add(mgr, o, entryController, extension.Options[*extensionsv1alpha1.BackupEntry]{
			Types: []string{storeType}, Actuator: backupEntries(mgr.GetClient()),
		}),
		o.AddWebhooks(mgr, webhook.Options{Webhooks: []webhook.Webhook{
			controlplane.Webhook(mgr, controlplane.Options{Type: Type, Ensurer: ensurer(image)}),
		}}),
		o.AddHeartbeat(mgr),
	)
}

// addHosts adds the controllers of the inventory.
func addHosts(mgr manager.Manager, o *options.Options) error {
	if !o.Enabled(hostController) {
		return nil
	}
	concurrency := concurrencyOf(o)
	return errors.Join(
		(&claims{client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: clock.RealClock{}}).add(mgr, concurrency),
		(&addresses{client: mgr.GetClient(), reader: mgr.GetAPIReader(), clock: clock.RealClock{}}).add(mgr),
		(&servers{client: mgr.GetClient(), reader: mgr.GetAPIReader(), run: runBySSH, clock: clock.RealClock{}}).add(mgr, concurrency),
	)
}

// concurrencyOf returns how many hosts, and how many claims, are reconciled at a time.
func concurrencyOf(o *options.Options) int {
	return cmp.Or(*o.Concurrency[hostController], o.MaxConcurrentReconciles)
}

// DriverRole lets the driver work with the claims of a control plane. What all drivers need, the gardenlet grants.
func DriverRole(namespace string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: controlplane.MachineControllerName(Name)}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{hostsv1alpha1.GroupName}, Resources: []string{"hostclaims"}, Verbs: []string{"create", "delete", "get", "list", "watch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "machine-controller-manager"}},
		},
	}
}

// renderComponents returns what runs in control planes, and the permissions of the driver.
func renderComponents(image string) generic.RenderControlPlane {
	return func(_ context.Context, in generic.ControlPlaneInput) ([]client.Object, error) {
		if err := decode(in.ControlPlane.Spec.ProviderConfig, &struct{ metav1.TypeMeta }{}, field.NewPath("spec", "providerConfig")); err != nil {
			return nil, err
		}
		return append(DriverRole(in.ControlPlane.Namespace), cloudController(image, in)...), nil
	}
}

// sshUnit is the unit that stops the SSH server of nodes if the shoot has no access by SSH.
const sshUnit = "sshd-ensurer.service"

// ensurer adds the driver to machine-controller-managers, and keeps the SSH servers of hosts, without which they could not be cleaned.
func ensurer(image string) controlplane.Ensurer {
	driver := func(shoot controlplane.Shoot) corev1.Container {
		container := controlplane.MachineController(Name, image, shoot.Namespace)
		container.Command = []string{"/usr/local/bin/gardener", container.Name}
		return container
	}
	return controlplane.Ensurer{
		MachineControllerManager: func(_ context.Context, shoot controlplane.Shoot, deployment *appsv1.Deployment) error {
			controlplane.SetContainer(&deployment.Spec.Template.Spec, driver(shoot))
			return nil
		},
		MachineControllerManagerAutoscaler: func(_ context.Context, shoot controlplane.Shoot, vpa *unstructured.Unstructured) error {
			return controlplane.SetPolicy(vpa, driver(shoot))
		},
		OperatingSystemConfig: func(_ context.Context, _ controlplane.Shoot, osc *extensionsv1alpha1.OperatingSystemConfig) error {
			osc.Spec.Units = slices.DeleteFunc(osc.Spec.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == sshUnit })
			return nil
		},
	}
}
