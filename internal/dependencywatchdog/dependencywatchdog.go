// Package dependencywatchdog is the dependency-watchdog of a seed: the prober protects shoots whose nodes cannot reach their kube-apiserver from controllers
// that would replace all nodes, and the weeder restarts pods of control planes without delay when what they depend on is available again.
//
// It has the flags and the configuration files of the original. Source: fleet.md 10.
package dependencywatchdog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	component "gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/subcommand"
)

// Name is the name of the command.
const Name = component.Name

// options are the flags of a subcommand.
type options struct {
	configFile, kubeconfig                    string
	concurrentReconciles                      int
	qps                                       float32
	burst                                     int32
	metricsAddress, healthAddress             string
	elect                                     bool
	leaseDuration, renewDeadline, retryPeriod time.Duration
	electionNamespace                         string
	logLevel                                  string
	// lease is the name of the Lease.
	lease string
}

// NewCommand returns the command with both subcommands.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: Name, Short: "Protect shoots while nodes cannot reach the kube-apiserver, and restart pods of control planes",
		Example: "  " + Name + " prober --config-file=" + component.ConfigFile, Version: process.Version(), SilenceUsage: true, RunE: subcommand.Choose,
	}
	cmd.AddCommand(
		role(component.ProberRole, "Scale down controllers of shoots whose nodes cannot reach the kube-apiserver", component.ProberLease, prober),
		role(component.WeederRole, "Restart pods of control planes when what they depend on is available again", component.WeederLease, weeder),
	)
	return cmd
}

func role(name, short, lease string, run func(context.Context, *options, logr.Logger) error) *cobra.Command {
	o := &options{lease: lease}
	cmd := &cobra.Command{
		Use: name, Short: short, Example: "  " + Name + " " + name + " --config-file=" + component.ConfigFile, Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := process.NewLogger(cmd.ErrOrStderr(), o.logLevel, "json")
			crlog.SetLogger(log)
			klog.SetLogger(log)
			return run(cmd.Context(), o, log)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.configFile, "config-file", "", "path of the configuration file")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; by default the cluster of the pod")
	fs.IntVar(&o.concurrentReconciles, "concurrent-reconciles", 1, "objects that are reconciled at a time")
	fs.Float32Var(&o.qps, "kube-api-qps", 5, "requests per second")
	fs.Int32Var(&o.burst, "kube-api-burst", 10, "requests at a time")
	fs.StringVar(&o.metricsAddress, "metrics-bind-addr", ":9643", "address of /metrics")
	fs.StringVar(&o.healthAddress, "health-bind-addr", ":9644", "address of /healthz and /readyz")
	fs.BoolVar(&o.elect, "enable-leader-election", false, "enable leader election")
	fs.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long another replica waits for a leader that does not renew its Lease")
	fs.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long a leader tries to renew its Lease")
	fs.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "how often a replica tries to get or renew the Lease")
	fs.StringVar(&o.electionNamespace, "leader-election-namespace", "garden", "namespace of the Lease")
	fs.StringVar(&o.logLevel, "zap-log-level", "info", "info, debug or error")
}

// settings are those of the process. The addresses have been parsed.
func (o *options) settings() process.Settings {
	s := process.Settings{
		Client:   componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.kubeconfig, QPS: o.qps, Burst: o.burst},
		LogLevel: o.logLevel, LogFormat: "json", Metrics: server(o.metricsAddress), Health: server(o.healthAddress),
	}
	if o.elect {
		s.LeaderElection = &componentbaseconfigv1alpha1.LeaderElectionConfiguration{
			LeaderElect: new(true), ResourceLock: "leases", ResourceNamespace: o.electionNamespace, ResourceName: o.lease,
			LeaseDuration: metav1.Duration{Duration: o.leaseDuration}, RenewDeadline: metav1.Duration{Duration: o.renewDeadline},
			RetryPeriod: metav1.Duration{Duration: o.retryPeriod},
		}
	}
	return s
}

// server returns the server at an address, or nil if it is not valid.
func server(address string) *process.Server {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &process.Server{BindAddress: host, Port: port}
}

// config is a configuration file.
type config interface {
	SetDefaults()
	Validate() error
}

// load reads a configuration file into into, and checks the flags.
func (o *options) load(into config) error {
	if o.configFile == "" {
		return errors.New("--config-file is missing; set it to the path of the configuration file")
	}
	for flag, address := range map[string]string{"metrics-bind-addr": o.metricsAddress, "health-bind-addr": o.healthAddress} {
		if server(address) == nil {
			return fmt.Errorf("--%s: %q is not an address such as :8080", flag, address)
		}
	}
	raw, err := os.ReadFile(o.configFile)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("decode configuration %q: %w", o.configFile, err)
	}
	into.SetDefaults()
	if err := into.Validate(); err != nil {
		return fmt.Errorf("configuration %q: %w", o.configFile, err)
	}
	return nil
}

func prober(ctx context.Context, o *options, log logr.Logger) error {
	c := &component.ProberConfig{}
	if err := o.load(c); err != nil {
		return err
	}
	return process.Component[options]{
		Name: component.Prober, Settings: (*options).settings,
		Kinds: []process.AddToScheme{extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme},
		Wire: func(_ context.Context, p *process.Process, o *options) error {
			return addProber(p, proberValues{
				Config: *c, SeedAPI: p.GetClient(), SeedReader: p.GetAPIReader(), Connect: connect, Clock: clock.RealClock{}, ConcurrentReconciles: o.concurrentReconciles,
			})
		},
	}.Run(ctx, o, log)
}

func weeder(ctx context.Context, o *options, log logr.Logger) error {
	c := &component.WeederConfig{}
	if err := o.load(c); err != nil {
		return err
	}
	return process.Component[options]{
		Name: component.Weeder, Settings: (*options).settings,
		Options: func(_ *options, options *manager.Options) {
			options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: withoutSpec}}
		},
		Wire: func(_ context.Context, p *process.Process, o *options) error {
			return addWeeder(p, weederValues{Config: *c, SeedCache: p.GetClient(), Clock: clock.RealClock{}, ConcurrentReconciles: o.concurrentReconciles})
		},
	}.Run(ctx, o, log)
}

// withoutSpec leaves out what the weeder does not read of pods, of which a seed has many.
func withoutSpec(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields, pod.Spec = nil, corev1.PodSpec{}
	}
	return object, nil
}
