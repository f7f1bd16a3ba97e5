// Package options has the flags that the processes of extensions have in common, so that charts for one extension fit another.
package options

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

// The values of --webhook-config-mode.
const (
	ModeService    = "service"
	ModeURL        = "url"
	ModeURLService = "url-service"
)

// Options are the settings of a process. New has their defaults.
type Options struct {
	// Name is the name of the extension, such as provider-example.
	Name string

	// Cluster is the one with the objects of the process, for the help of its flags: by default the seed.
	Cluster string
	// Kubeconfig and Master say how it is reached. Empty means by the ServiceAccount of the pod.
	Kubeconfig, Master string

	// LeaderElection, its Lease, and the namespace of that. Empty means the namespace of the pod.
	LeaderElection                            bool
	LeaderElectionID, LeaderElectionNamespace string

	// MetricsBindAddress and HealthBindAddress are where the process listens. "0" means nowhere.
	MetricsBindAddress, HealthBindAddress string
	// LogLevel is debug, info or error, and LogFormat is json or text.
	LogLevel, LogFormat string

	// Controllers are the names of those that run; empty means all. DisableControllers are those that do not.
	Controllers, DisableControllers []string
	// MaxConcurrentReconciles is how many objects are reconciled at once, and Concurrency the same for a controller, by its name. Zero there means the former.
	MaxConcurrentReconciles int
	Concurrency             map[string]*int
	// IgnoreOperationAnnotation reconciles after each change of a spec, without waiting for the gardenlet to request it.
	IgnoreOperationAnnotation bool
	// ExtensionClasses are the values of spec.class that the process is responsible for. Empty means shoot.
	ExtensionClasses []string

	// HeartbeatNamespace is where the Lease of the heartbeat is, and HeartbeatRenewIntervalSeconds how often it is renewed.
	HeartbeatNamespace            string
	HeartbeatRenewIntervalSeconds int32

	// GardenerVersion is the version of the gardenlet, and SelfHostedShootCluster says that the process runs in a self-hosted shoot.
	GardenerVersion        string
	SelfHostedShootCluster bool

	// WebhookServerHost and WebhookServerPort are where webhooks are served.
	WebhookServerHost string
	WebhookServerPort int
	// WebhookMode is how kube-apiservers connect: by a Service, by WebhookURL, or by a URL with the name of the Service.
	WebhookMode, WebhookURL string
	// WebhookShootServerPort and WebhookShootServicePort are the ports of webhooks for objects in shoots, if there are others besides: where they are served, and
	// of the Service.
	WebhookShootServerPort, WebhookShootServicePort int
	// WebhookServicePort is the port of the Service, WebhookNamespace its namespace, and WebhookOwnerNamespace that which the registration is deleted with.
	WebhookServicePort                      int
	WebhookNamespace, WebhookOwnerNamespace string
	// WebhookCertDir is not used: certificates are in Secrets. The flag exists as charts set it.
	WebhookCertDir string
	// DisableWebhooks are the names of webhooks that are not registered.
	DisableWebhooks []string
}

// New returns the options of an extension with controllers of some names, which --controllers and the flags for their concurrency know.
func New(name string, controllers ...string) *Options {
	o := &Options{
		Name: name, Cluster: "seed", LeaderElection: true, LeaderElectionID: name + "-leader-election", MetricsBindAddress: ":8080", HealthBindAddress: ":8081",
		LogLevel: "info", LogFormat: "json", MaxConcurrentReconciles: 5, Concurrency: map[string]*int{}, HeartbeatRenewIntervalSeconds: 30,
		WebhookServerPort: 10250, WebhookMode: ModeService, WebhookServicePort: 443,
		WebhookShootServerPort: 10251, WebhookShootServicePort: 444,
	}
	for _, controller := range controllers {
		o.Concurrency[controller] = new(0)
	}
	return o
}

// AddFlags adds the flags.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig of the "+o.Cluster+" (default: the ServiceAccount of the pod)")
	f.StringVar(&o.Master, "master", o.Master, "address of the kube-apiserver of the "+o.Cluster+", instead of the one in the kubeconfig")
	f.BoolVar(&o.LeaderElection, "leader-election", o.LeaderElection, "let only one replica act")
	f.StringVar(&o.LeaderElectionID, "leader-election-id", o.LeaderElectionID, "name of the Lease for leader election")
	f.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "namespace of that Lease (default: that of the pod)")
	f.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "where metrics are served; 0 for nowhere")
	f.StringVar(&o.HealthBindAddress, "health-bind-address", o.HealthBindAddress, "where /healthz and /readyz are served; 0 for nowhere")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info or error")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	f.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "names of the controllers to run (default: all)")
	f.StringSliceVar(&o.DisableControllers, "disable-controllers", o.DisableControllers, "names of controllers not to run")
	f.StringSliceVar(&o.DisableWebhooks, "disable-webhooks", o.DisableWebhooks, "names of webhooks not to register")
	f.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", o.MaxConcurrentReconciles, "how many objects of a controller are reconciled at once")
	for _, controller := range slices.Sorted(maps.Keys(o.Concurrency)) {
		n := o.Concurrency[controller]
		f.IntVar(n, controller+"-max-concurrent-reconciles", *n, "the same for this controller (default: --max-concurrent-reconciles)")
	}
	f.BoolVar(&o.IgnoreOperationAnnotation, "ignore-operation-annotation", o.IgnoreOperationAnnotation, "reconcile after each change of a spec, also without the annotation gardener.cloud/operation")
	f.StringSliceVar(&o.ExtensionClasses, "extension-classes", o.ExtensionClasses, "values of spec.class to reconcile: shoot, seed or garden (default: shoot)")
	f.StringVar(&o.HeartbeatNamespace, "heartbeat-namespace", o.HeartbeatNamespace, "namespace of the Lease of the heartbeat")
	f.Int32Var(&o.HeartbeatRenewIntervalSeconds, "heartbeat-renew-interval-seconds", o.HeartbeatRenewIntervalSeconds, "how often the heartbeat is renewed")
	f.StringVar(&o.GardenerVersion, "gardener-version", o.GardenerVersion, "version of the gardenlet")
	f.BoolVar(&o.SelfHostedShootCluster, "self-hosted-shoot-cluster", o.SelfHostedShootCluster, "the process runs in a self-hosted shoot")
	f.StringVar(&o.WebhookServerHost, "webhook-config-server-host", o.WebhookServerHost, "address where webhooks are served (default: all)")
	f.IntVar(&o.WebhookServerPort, "webhook-config-server-port", o.WebhookServerPort, "port where webhooks are served")
	f.StringVar(&o.WebhookCertDir, "webhook-config-cert-dir", o.WebhookCertDir, "not used: certificates are in Secrets")
	f.StringVar(&o.WebhookMode, "webhook-config-mode", o.WebhookMode, "how kube-apiservers connect: service, url, or url-service for a URL with the name of the Service")
	f.StringVar(&o.WebhookURL, "webhook-config-url", o.WebhookURL, "address of the webhooks as host:port, in mode url")
	f.IntVar(&o.WebhookServicePort, "webhook-config-service-port", o.WebhookServicePort, "port of the Service of the webhooks")
	f.IntVar(&o.WebhookShootServerPort, "webhook-config-shoot-server-port", o.WebhookShootServerPort, "port where webhooks for objects in shoots are served, if there are others")
	f.IntVar(&o.WebhookShootServicePort, "webhook-config-shoot-service-port", o.WebhookShootServicePort, "port of the Service for these")
	f.StringVar(&o.WebhookNamespace, "webhook-config-namespace", o.WebhookNamespace, "namespace of the Service of the webhooks, and of their certificates")
	f.StringVar(&o.WebhookOwnerNamespace, "webhook-config-owner-namespace", o.WebhookOwnerNamespace, "namespace that the registration of the webhooks is deleted with")
}

// Validate returns what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	check := func(valid bool, format string, args ...any) {
		if !valid {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(slices.Contains([]string{ModeService, ModeURL, ModeURLService}, o.WebhookMode), "--webhook-config-mode=%s: must be service, url or url-service", o.WebhookMode)
	check(o.WebhookMode != ModeURL || o.WebhookURL != "", "--webhook-config-url: required in mode url")
	check(slices.Contains([]string{"debug", "info", "error"}, o.LogLevel), "--log-level=%s: must be debug, info or error", o.LogLevel)
	check(slices.Contains([]string{"json", "text"}, o.LogFormat), "--log-format=%s: must be json or text", o.LogFormat)
	check(o.MaxConcurrentReconciles > 0, "--max-concurrent-reconciles=%d: must be above 0", o.MaxConcurrentReconciles)
	check(o.HeartbeatRenewIntervalSeconds > 0, "--heartbeat-renew-interval-seconds=%d: must be above 0", o.HeartbeatRenewIntervalSeconds)
	for _, class := range o.ExtensionClasses {
		check(slices.Contains([]string{"shoot", "seed", "garden"}, class), "--extension-classes=%s: must be shoot, seed or garden", class)
	}
	for _, controller := range slices.Sorted(maps.Keys(o.Concurrency)) {
		check(*o.Concurrency[controller] >= 0, "--%s-max-concurrent-reconciles=%d: must not be negative", controller, *o.Concurrency[controller])
	}
	for _, controller := range slices.Concat(o.Controllers, o.DisableControllers) {
		_, known := o.Concurrency[controller]
		check(known, "--controllers, --disable-controllers: there is no controller %q; there are %v", controller, slices.Sorted(maps.Keys(o.Concurrency)))
	}
	return errors.Join(errs...)
}

// Logger returns the logger of the process.
func (o *Options) Logger(out io.Writer) logr.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "error": slog.LevelError}[o.LogLevel] // info is zero
	options := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(out, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(out, options))
}

// RESTConfig returns how the cluster is reached.
func (o *Options) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// NewManager returns the manager of the process, with checks of its health. Functions may change settings that have no flag.
func (o *Options) NewManager(config *rest.Config, scheme *runtime.Scheme, log logr.Logger, change ...func(*manager.Options)) (manager.Manager, error) {
	settings := manager.Options{
		Scheme: scheme, Logger: log, LeaderElection: o.LeaderElection, LeaderElectionID: o.LeaderElectionID, LeaderElectionNamespace: o.LeaderElectionNamespace,
		// Secrets and ConfigMaps are read by name, from the API server: a cache would hold those of all namespaces.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		LeaderElectionReleaseOnCancel: true, Metrics: metricsserver.Options{BindAddress: o.MetricsBindAddress}, HealthProbeBindAddress: o.HealthBindAddress,
	}
	for _, f := range change {
		f(&settings)
	}
	mgr, err := manager.New(config, settings)
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// Enabled says whether a controller is to run.
func (o *Options) Enabled(controller string) bool {
	return (len(o.Controllers) == 0 || slices.Contains(o.Controllers, controller)) && !slices.Contains(o.DisableControllers, controller)
}

// Add adds a controller of the library with the options, if it is enabled.
func Add[T extensionsv1alpha1.Object](mgr manager.Manager, o *Options, controller string, e extension.Options[T]) error {
	if !o.Enabled(controller) {
		return nil
	}
	e.Name, e.Classes, e.ByGeneration, e.Concurrency = o.Name, o.Classes(), o.IgnoreOperationAnnotation, o.concurrency(controller)
	return extension.Add(mgr, e)
}

// AddHealthChecks adds health checks of the library with the options, if their controller is enabled.
func AddHealthChecks[T extensionsv1alpha1.Object](mgr manager.Manager, o *Options, controller string, h extension.HealthOptions[T]) error {
	if !o.Enabled(controller) {
		return nil
	}
	h.Name, h.Classes, h.Concurrency = o.Name, o.Classes(), o.concurrency(controller)
	return extension.AddHealthChecks(mgr, h)
}

func (o *Options) concurrency(controller string) int {
	return cmp.Or(ptr.Deref(o.Concurrency[controller], 0), o.MaxConcurrentReconciles)
}

// Classes are the classes of extension resources, for controllers that Add does not add.
func (o *Options) Classes() []extensionsv1alpha1.ExtensionClass {
	var classes []extensionsv1alpha1.ExtensionClass
	for _, class := range o.ExtensionClasses {
		classes = append(classes, extensionsv1alpha1.ExtensionClass(class))
	}
	return classes
}

// AddHeartbeat adds the heartbeat, if there is a namespace for it.
func (o *Options) AddHeartbeat(mgr manager.Manager) error {
	if o.HeartbeatNamespace == "" {
		return nil
	}
	return mgr.Add(&extension.Heartbeat{
		Name: o.Name, Namespace: o.HeartbeatNamespace, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{},
		Interval: time.Duration(o.HeartbeatRenewIntervalSeconds) * time.Second,
	})
}

// AddWebhooks adds the webhooks that are not disabled, and removes others from the registration. Their Service is gardener-extension-<name>.
func (o *Options) AddWebhooks(mgr manager.Manager, w webhook.Options) error {
	w = o.webhooks(w)
	if len(w.Webhooks) == 0 && w.Shoots == nil && w.Namespace == "" { // a process that never has webhooks, such as that for a garden
		return nil
	}
	return webhook.Add(mgr, w)
}

func (o *Options) webhooks(w webhook.Options) webhook.Options {
	w.Name, w.Namespace, w.OwnerNamespace = o.Name, o.WebhookNamespace, o.WebhookOwnerNamespace
	w.BindAddress, w.Port, w.ServicePort = o.WebhookServerHost, o.WebhookServerPort, int32(o.WebhookServicePort)
	switch o.WebhookMode {
	case ModeURL:
		w.URL = o.WebhookURL
		if _, _, err := net.SplitHostPort(w.URL); err != nil {
			w.URL = net.JoinHostPort(w.URL, strconv.Itoa(o.WebhookServicePort))
		}
	default:
		w.Service, w.ByURL = extensionsv1alpha1.WebhookNamePrefix+o.Name, o.WebhookMode == ModeURLService
	}
	w.Webhooks = o.enabledWebhooks(w.Webhooks)
	if w.Shoots != nil {
		shoots := *w.Shoots
		shoots.Webhooks = o.enabledWebhooks(shoots.Webhooks)
		if w.Shoots = &shoots; len(shoots.Webhooks) == 0 {
			w.Shoots = nil
		} else if len(w.Webhooks) > 0 {
			shoots.Port, shoots.ServicePort = o.WebhookShootServerPort, int32(o.WebhookShootServicePort)
		}
	}
	return w
}

func (o *Options) enabledWebhooks(webhooks []webhook.Webhook) []webhook.Webhook {
	return slices.DeleteFunc(slices.Clone(webhooks), func(w webhook.Webhook) bool { return slices.Contains(o.DisableWebhooks, w.Name) })
}
