package machinecontroller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"gardener.cloud/gardener/internal/process"
)

// Common are the flags of both processes. All flags have the names, and the defaults, that they have in the original, so that the image of either process
// can be the original's.
type Common struct {
	// ControlKubeconfig is for the cluster with the Machines, TargetKubeconfig for the one that machines join.
	ControlKubeconfig, TargetKubeconfig string
	// Namespace is that of the Machines.
	Namespace string
	// ConcurrentSyncs is how many objects of a kind are reconciled at a time.
	ConcurrentSyncs int
	// QPS and Burst limit the requests to each cluster.
	QPS   float32
	Burst int32
	// LeaderElect enables leader election. The others are its times.
	LeaderElect                               bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// BindAddress and Port are where metrics and probes are served.
	BindAddress string
	Port        int
	// LogLevel and LogFormat are those of all processes. Profiling serves profiles with the metrics.
	LogLevel, LogFormat string
	Profiling           bool
	// Verbosity is the log level of the original.
	Verbosity int

	// lease is the name of the Lease, by which replicas of a process elect a leader.
	lease string
}

// Options are the flags of the generic process.
type Options struct {
	Common
	// SafetyUp and SafetyDown are the surplus of machines of a set that freezes it, and the one up to which it is not frozen any more.
	SafetyUp, SafetyDown int
}

// ProviderOptions are the flags of the process of a provider.
type ProviderOptions struct {
	Common
	// CreationTimeout, HealthTimeout, DrainTimeout, MaxEvictRetries and NodeConditions are for machines without settings of their own.
	CreationTimeout, HealthTimeout, DrainTimeout time.Duration
	MaxEvictRetries                              int32
	NodeConditions                               []string
	// PVDetachTimeout is how long volumes may take to be detached.
	PVDetachTimeout time.Duration
	// MaxReplaced is how many machines of a pool may be being replaced when an unhealthy one fails.
	MaxReplaced int
	// TokenGroups are groups of the users of bootstrap tokens, separated by commas.
	TokenGroups string
	// OrphansPeriod, StatusCheckPeriod and StatusCheckTimeout configure the controllers in the package safety.
	OrphansPeriod, StatusCheckPeriod, StatusCheckTimeout time.Duration
}

const (
	// machineBurst is how many machines a set creates at a time.
	machineBurst = 100
	// verboseFrom is the log level of the original from which on decisions are logged.
	verboseFrom = 4
)

func common(lease string, port int) Common {
	election := componentbaseconfigv1alpha1.LeaderElectionConfiguration{}
	componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(&election)
	return Common{
		ConcurrentSyncs: 20, QPS: 100, Burst: 130, LeaderElect: true, LeaseDuration: election.LeaseDuration.Duration,
		RenewDeadline: election.RenewDeadline.Duration, RetryPeriod: election.RetryPeriod.Duration,
		Port: port, LogLevel: "info", LogFormat: "json", lease: lease,
	}
}

// NewOptions returns the defaults of the generic process.
func NewOptions() *Options {
	return &Options{Common: common(Lease, 10258), SafetyUp: 2, SafetyDown: 1}
}

// NewProviderOptions returns the defaults of the process of a provider.
func NewProviderOptions() *ProviderOptions {
	return &ProviderOptions{
		Common:          common(ProviderLease, 10259),
		CreationTimeout: 20 * time.Minute, HealthTimeout: 10 * time.Minute, DrainTimeout: 2 * time.Hour,
		NodeConditions:  []string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"},
		PVDetachTimeout: 2 * time.Minute, MaxReplaced: 1,
		OrphansPeriod: 15 * time.Minute, StatusCheckPeriod: 30 * time.Second, StatusCheckTimeout: 10 * time.Second,
	}
}

func (o *Common) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ControlKubeconfig, "control-kubeconfig", o.ControlKubeconfig, `kubeconfig of the cluster with the Machines; empty or "inClusterConfig" for the one of this pod`)
	fs.StringVar(&o.TargetKubeconfig, "target-kubeconfig", o.TargetKubeconfig, "kubeconfig of the cluster that machines join; empty for the one with the Machines")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the Machines")
	fs.IntVar(&o.ConcurrentSyncs, "concurrent-syncs", o.ConcurrentSyncs, "objects of a kind that are reconciled at a time")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to each cluster")
	fs.Int32Var(&o.Burst, "kube-api-burst", o.Burst, "requests at a time to each cluster")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "enable leader election")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "how long another replica waits for a leader that does not renew its Lease")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "how long a leader tries to renew its Lease")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "how often a replica tries to get or renew the Lease")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "address to serve at; empty for all")
	fs.IntVar(&o.Port, "port", o.Port, "port of /metrics, /healthz and /readyz")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "info, debug or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	fs.IntVar(&o.Verbosity, "v", o.Verbosity, fmt.Sprintf("log level as a number; from %d on the same as --log-level=debug", verboseFrom))
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve profiles with the metrics")
	// Flags of the original without an effect here.
	fs.String("kube-api-content-type", "", "has no effect: custom resources are always JSON")
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.addFlags(fs)
	fs.IntVar(&o.SafetyUp, "safety-up", o.SafetyUp, "surplus of machines that freezes a MachineSet")
	fs.IntVar(&o.SafetyDown, "safety-down", o.SafetyDown, "surplus of machines up to which a MachineSet is not frozen any more")
	fs.Duration("machine-safety-overshooting-period", 0, "has no effect: the surplus of a MachineSet is checked whenever its Machines change")
}

// AddFlags adds the flags to a set.
func (o *ProviderOptions) AddFlags(fs *pflag.FlagSet) {
	o.addFlags(fs)
	fs.DurationVar(&o.CreationTimeout, "machine-creation-timeout", o.CreationTimeout, "how long a machine may take to join")
	fs.DurationVar(&o.HealthTimeout, "machine-health-timeout", o.HealthTimeout, "how long a machine may be unhealthy")
	fs.DurationVar(&o.DrainTimeout, "machine-drain-timeout", o.DrainTimeout, "how long draining may take before pods are deleted by force")
	fs.Int32Var(&o.MaxEvictRetries, "machine-max-evict-retries", o.MaxEvictRetries, "limit of draining in retries of 20 seconds; 0 for none")
	fs.StringSliceVar(&o.NodeConditions, "node-conditions", o.NodeConditions, "conditions of a Node that make it unhealthy when they are True")
	fs.DurationVar(&o.PVDetachTimeout, "machine-pv-detach-timeout", o.PVDetachTimeout, "how long volumes may take to be detached from a drained Node")
	fs.IntVar(&o.MaxReplaced, "machine-max-parallel-replacements", o.MaxReplaced, "machines of a pool that may be being replaced when an unhealthy one fails")
	fs.StringVar(&o.TokenGroups, "bootstrap-token-auth-extra-groups", o.TokenGroups, "groups of the users of bootstrap tokens, separated by commas, besides system:bootstrappers")
	fs.DurationVar(&o.OrphansPeriod, "machine-safety-orphan-vms-period", o.OrphansPeriod, "how often machines without a Machine are looked for")
	fs.DurationVar(&o.StatusCheckPeriod, "machine-safety-apiserver-statuscheck-period", o.StatusCheckPeriod, "how often the readiness of the target cluster is checked")
	fs.DurationVar(&o.StatusCheckTimeout, "machine-safety-apiserver-statuscheck-timeout", o.StatusCheckTimeout, "how long a readiness check of the target cluster may take")
}

// refusals collects invalid flags.
type refusals []error

func (r *refusals) refuse(invalid bool, flag, format string, args ...any) {
	if invalid {
		*r = append(*r, fmt.Errorf("--%s %s", flag, fmt.Sprintf(format, args...)))
	}
}

func (r *refusals) positive(durations map[string]time.Duration) {
	for flag, duration := range durations {
		r.refuse(duration <= 0, flag, "must be above zero")
	}
}

func (r *refusals) join() error {
	slices.SortFunc(*r, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(*r...)
}

func (o *Common) validate() refusals {
	var r refusals
	r.refuse(o.Namespace == "", "namespace", "must be set to the namespace of the Machines")
	r.positive(map[string]time.Duration{
		"leader-elect-lease-duration": o.LeaseDuration, "leader-elect-renew-deadline": o.RenewDeadline, "leader-elect-retry-period": o.RetryPeriod,
	})
	r.refuse(o.RenewDeadline >= o.LeaseDuration, "leader-elect-renew-deadline", "must be below --leader-elect-lease-duration")
	r.refuse(o.ConcurrentSyncs < 1, "concurrent-syncs", "must be above zero")
	r.refuse(!slices.Contains([]string{"info", "debug", "error"}, o.LogLevel), "log-level", "must be one of info, debug, error")
	r.refuse(!slices.Contains([]string{"json", "text"}, o.LogFormat), "log-format", "must be one of json, text")
	return r
}

// Validate returns all invalid flags.
func (o *Options) Validate() error {
	r := o.validate()
	r.refuse(o.SafetyUp < 0, "safety-up", "must not be below zero")
	r.refuse(o.SafetyDown < 0, "safety-down", "must not be below zero")
	return r.join()
}

// Validate returns all invalid flags.
func (o *ProviderOptions) Validate() error {
	r := o.validate()
	r.positive(map[string]time.Duration{
		"machine-creation-timeout": o.CreationTimeout, "machine-health-timeout": o.HealthTimeout, "machine-drain-timeout": o.DrainTimeout,
		"machine-safety-orphan-vms-period": o.OrphansPeriod, "machine-safety-apiserver-statuscheck-period": o.StatusCheckPeriod,
		"machine-safety-apiserver-statuscheck-timeout": o.StatusCheckTimeout,
	})
	r.refuse(o.MaxEvictRetries < 0, "machine-max-evict-retries", "must not be below zero")
	r.refuse(o.PVDetachTimeout < 0, "machine-pv-detach-timeout", "must not be below zero")
	r.refuse(o.MaxReplaced < 1, "machine-max-parallel-replacements", "must be above zero")
	return r.join()
}

// connection is the configuration of the clients of a cluster.
func (o *Common) connection(kubeconfig string) componentbaseconfigv1alpha1.ClientConnectionConfiguration {
	if kubeconfig == "inClusterConfig" {
		kubeconfig = ""
	}
	return componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: kubeconfig, QPS: o.QPS, Burst: o.Burst}
}

func (o *Common) logLevel() string {
	if o.Verbosity >= verboseFrom {
		return "debug"
	}
	return o.LogLevel
}

func (o *Common) settings() process.Settings {
	server := &process.Server{BindAddress: o.BindAddress, Port: o.Port}
	s := process.Settings{
		Client: o.connection(o.ControlKubeconfig), LogLevel: o.logLevel(), LogFormat: o.LogFormat, Health: server, Metrics: server,
		Debugging: &componentbaseconfigv1alpha1.DebuggingConfiguration{EnableProfiling: &o.Profiling},
	}
	if o.LeaderElect {
		s.LeaderElection = &componentbaseconfigv1alpha1.LeaderElectionConfiguration{
			LeaderElect: &o.LeaderElect, ResourceLock: resourcelock.LeasesResourceLock, ResourceNamespace: o.Namespace, ResourceName: o.lease,
			LeaseDuration: metav1.Duration{Duration: o.LeaseDuration}, RenewDeadline: metav1.Duration{Duration: o.RenewDeadline},
			RetryPeriod: metav1.Duration{Duration: o.RetryPeriod},
		}
	}
	return s
}
