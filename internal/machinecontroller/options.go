package machinecontroller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	"gardener.cloud/gardener/internal/process"
)

// Options are the flags. They have the same names as in extensions for other infrastructures.
type Options struct {
	// Provider is the driver.
	Provider string
	// ControlKubeconfig is for the cluster with the Machines, TargetKubeconfig for the one that machines join.
	ControlKubeconfig, TargetKubeconfig string
	// Namespace is that of the Machines.
	Namespace string

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

	// SafetyUp, SafetyDown, OrphansPeriod, StatusCheckPeriod and StatusCheckTimeout configure the controllers in the package safety.
	SafetyUp, SafetyDown                                 int
	OrphansPeriod, StatusCheckPeriod, StatusCheckTimeout time.Duration

	// ConcurrentSyncs is how many objects of a kind are reconciled at a time.
	ConcurrentSyncs int
	// QPS and Burst limit the requests to each cluster.
	QPS   float32
	Burst int32
	// LeaderElect enables leader election.
	LeaderElect bool
	// BindAddress, Port and HealthPort are where metrics and probes are served.
	BindAddress      string
	Port, HealthPort int
	// LogLevel and LogFormat are those of all processes. Profiling serves profiles with the metrics.
	LogLevel, LogFormat string
	Profiling           bool
}

// machineBurst is how many machines a set creates at a time.
const machineBurst = 100

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Provider:        "local",
		CreationTimeout: 20 * time.Minute, HealthTimeout: 10 * time.Minute, DrainTimeout: 2 * time.Hour,
		NodeConditions:  []string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"},
		PVDetachTimeout: 2 * time.Minute, MaxReplaced: 1,
		SafetyUp: 2, SafetyDown: 1, OrphansPeriod: 15 * time.Minute, StatusCheckPeriod: 30 * time.Second, StatusCheckTimeout: 10 * time.Second,
		ConcurrentSyncs: 20, QPS: 100, Burst: 130, LeaderElect: true, Port: 10258, HealthPort: 10259, LogLevel: "info", LogFormat: "json",
	}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Provider, "provider", o.Provider, "infrastructure of the machines: local")
	fs.StringVar(&o.ControlKubeconfig, "control-kubeconfig", o.ControlKubeconfig, `kubeconfig of the cluster with the Machines; empty or "inClusterConfig" for the one of this pod`)
	fs.StringVar(&o.TargetKubeconfig, "target-kubeconfig", o.TargetKubeconfig, "kubeconfig of the cluster that machines join; empty for the one with the Machines")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the Machines")
	fs.DurationVar(&o.CreationTimeout, "machine-creation-timeout", o.CreationTimeout, "how long a machine may take to join")
	fs.DurationVar(&o.HealthTimeout, "machine-health-timeout", o.HealthTimeout, "how long a machine may be unhealthy")
	fs.DurationVar(&o.DrainTimeout, "machine-drain-timeout", o.DrainTimeout, "how long draining may take before pods are deleted by force")
	fs.Int32Var(&o.MaxEvictRetries, "machine-max-evict-retries", o.MaxEvictRetries, "limit of draining in retries of 20 seconds; 0 for none")
	fs.StringSliceVar(&o.NodeConditions, "node-conditions", o.NodeConditions, "conditions of a Node that make it unhealthy when they are True")
	fs.DurationVar(&o.PVDetachTimeout, "machine-pv-detach-timeout", o.PVDetachTimeout, "how long volumes may take to be detached from a drained Node")
	fs.IntVar(&o.MaxReplaced, "machine-max-parallel-replacements", o.MaxReplaced, "machines of a pool that may be being replaced when an unhealthy one fails")
	fs.StringVar(&o.TokenGroups, "bootstrap-token-auth-extra-groups", o.TokenGroups, "groups of the users of bootstrap tokens, separated by commas, besides system:bootstrappers")
	fs.IntVar(&o.SafetyUp, "safety-up", o.SafetyUp, "surplus of machines that freezes a MachineSet")
	fs.IntVar(&o.SafetyDown, "safety-down", o.SafetyDown, "surplus of machines up to which a MachineSet is not frozen any more")
	fs.DurationVar(&o.OrphansPeriod, "machine-safety-orphan-vms-period", o.OrphansPeriod, "how often machines without a Machine are looked for")
	fs.DurationVar(&o.StatusCheckPeriod, "machine-safety-apiserver-statuscheck-period", o.StatusCheckPeriod, "how often the readiness of the target cluster is checked")
	fs.DurationVar(&o.StatusCheckTimeout, "machine-safety-apiserver-statuscheck-timeout", o.StatusCheckTimeout, "how long a readiness check of the target cluster may take")
	fs.IntVar(&o.ConcurrentSyncs, "concurrent-syncs", o.ConcurrentSyncs, "objects of a kind that are reconciled at a time")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to each cluster")
	fs.Int32Var(&o.Burst, "kube-api-burst", o.Burst, "requests at a time to each cluster")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "enable leader election")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "address to serve at; empty for all")
	fs.IntVar(&o.Port, "port", o.Port, "port of /metrics")
	fs.IntVar(&o.HealthPort, "health-port", o.HealthPort, "port of /healthz and /readyz")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "info, debug or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve profiles with the metrics")
}

// Validate returns all invalid flags.
func (o *Options) Validate() error {
	var errs []error
	refuse := func(invalid bool, flag, format string, args ...any) {
		if invalid {
			errs = append(errs, fmt.Errorf("--%s %s", flag, fmt.Sprintf(format, args...)))
		}
	}
	refuse(o.Provider != "local", "provider", "%q is not supported; supported is: local", o.Provider)
	refuse(o.Namespace == "", "namespace", "must be set to the namespace of the Machines")
	for flag, duration := range map[string]time.Duration{
		"machine-creation-timeout": o.CreationTimeout, "machine-health-timeout": o.HealthTimeout, "machine-drain-timeout": o.DrainTimeout,
		"machine-safety-orphan-vms-period": o.OrphansPeriod, "machine-safety-apiserver-statuscheck-period": o.StatusCheckPeriod,
		"machine-safety-apiserver-statuscheck-timeout": o.StatusCheckTimeout,
	} {
		refuse(duration <= 0, flag, "must be above zero")
	}
	for flag, number := range map[string]int{
		"machine-max-evict-retries": int(o.MaxEvictRetries), "safety-up": o.SafetyUp, "safety-down": o.SafetyDown,
	} {
		refuse(number < 0, flag, "must not be below zero")
	}
	refuse(o.PVDetachTimeout < 0, "machine-pv-detach-timeout", "must not be below zero")
	refuse(o.MaxReplaced < 1, "machine-max-parallel-replacements", "must be above zero")
	refuse(o.ConcurrentSyncs < 1, "concurrent-syncs", "must be above zero")
	refuse(!slices.Contains([]string{"info", "debug", "error"}, o.LogLevel), "log-level", "must be one of info, debug, error")
	refuse(!slices.Contains([]string{"json", "text"}, o.LogFormat), "log-format", "must be one of json, text")
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// connection is the configuration of the clients of a cluster.
func (o *Options) connection(kubeconfig string) componentbaseconfigv1alpha1.ClientConnectionConfiguration {
	if kubeconfig == "inClusterConfig" {
		kubeconfig = ""
	}
	return componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: kubeconfig, QPS: o.QPS, Burst: o.Burst}
}

func (o *Options) settings() process.Settings {
	s := process.Settings{
		Client: o.connection(o.ControlKubeconfig), LogLevel: o.LogLevel, LogFormat: o.LogFormat,
		Health: &process.Server{BindAddress: o.BindAddress, Port: o.HealthPort}, Metrics: &process.Server{BindAddress: o.BindAddress, Port: o.Port},
		Debugging: &componentbaseconfigv1alpha1.DebuggingConfiguration{EnableProfiling: &o.Profiling},
	}
	if o.LeaderElect {
		election := &componentbaseconfigv1alpha1.LeaderElectionConfiguration{
			ResourceLock: resourcelock.LeasesResourceLock, ResourceNamespace: o.Namespace, ResourceName: Name,
		}
		componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
		s.LeaderElection = election
	}
	return s
}
