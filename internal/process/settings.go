package process

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Settings are the common settings of all processes.
type Settings struct {
	// Client is the connection to the manager's cluster.
	Client componentbaseconfigv1alpha1.ClientConnectionConfiguration
	// LeaderElection configures leader election. Nil means that all replicas are active.
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration
	// LogLevel is info, debug or error.
	LogLevel string
	// LogFormat is json or text.
	LogFormat string
	// Health is the server of /healthz and /readyz. Nil means none. It may have the address of Metrics.
	Health *Server
	// Metrics is the server of /metrics, and of /debug/pprof if profiling is enabled. Nil means none.
	Metrics *Server
	// Debugging enables profiling. It may be nil.
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration
	// FeatureGates are the gates that differ from their default, by name.
	FeatureGates map[string]bool
}

// Server is the address of an HTTP server. The type of that name in every configuration can be converted to it.
type Server struct {
	// BindAddress is an IP address. Empty means all addresses.
	BindAddress string
	// Port is the port.
	Port int
}

// address is the address in the format of the net package; "0" disables a server of controller-runtime.
func (s *Server) address() string {
	if s == nil {
		return "0"
	}
	return net.JoinHostPort(s.BindAddress, strconv.Itoa(s.Port))
}

// probesWithMetrics says whether probes and metrics have the same address.
func (s Settings) probesWithMetrics() bool {
	return s.Health != nil && s.Metrics != nil && *s.Health == *s.Metrics
}

// healthAddress is the address of a server for the probes alone.
func (s Settings) healthAddress() string {
	if s.probesWithMetrics() {
		return (*Server)(nil).address()
	}
	return s.Health.address()
}

// profiling and contentionProfiling say which profiles are enabled.
func (s Settings) profiling() bool {
	return s.Debugging != nil && s.Debugging.EnableProfiling != nil && *s.Debugging.EnableProfiling
}

func (s Settings) contentionProfiling() bool {
	return s.profiling() && s.Debugging.EnableContentionProfiling != nil && *s.Debugging.EnableContentionProfiling
}

// electsLeader says whether leader election is enabled.
func (s Settings) electsLeader() bool {
	return s.LeaderElection != nil && (s.LeaderElection.LeaderElect == nil || *s.LeaderElection.LeaderElect)
}

// ClientConfig returns the client configuration for a kubeconfig or, if there is none, for the cluster that the process runs in.
func ClientConfig(connection componentbaseconfigv1alpha1.ClientConnectionConfiguration) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if connection.Kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", connection.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", connection.Kubeconfig, err)
	}
	SetConnection(connection)(config)
	return config, nil
}

// SetConnection returns a function that sets the rate limits and content types of a client configuration.
func SetConnection(connection componentbaseconfigv1alpha1.ClientConnectionConfiguration) func(*rest.Config) {
	return func(config *rest.Config) {
		config.QPS, config.Burst = connection.QPS, int(connection.Burst)
		config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	}
}

// NewLogger returns a logger that writes lines of JSON or text. Of the levels info, debug and error, debug shows V(1) too.
func NewLogger(w io.Writer, level, format string) logr.Logger {
	return newLogger(w, map[string]zapcore.Level{"debug": zapcore.DebugLevel, "error": zapcore.ErrorLevel}[level], format)
}

// NewUnfilteredLogger returns a logger that writes messages of any verbosity: klog, which it is for, has decided on them with its own flags.
func NewUnfilteredLogger(w io.Writer, format string) logr.Logger {
	return newLogger(w, math.MinInt8, format)
}

func newLogger(w io.Writer, lowest zapcore.Level, format string) logr.Logger {
	encoder := zap.JSONEncoder
	if format == "text" {
		encoder = zap.ConsoleEncoder
	}
	return zap.New(
		zap.WriteTo(zapcore.Lock(zapcore.AddSync(w))), zap.Level(lowest), // not every writer is a file
		encoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.ISO8601TimeEncoder }),
		// An error is where it was returned from, not where it is logged; what a panic leaves is logged with its stack anyway.
		zap.StacktraceLevel(zapcore.PanicLevel),
	)
}

// newGates returns the feature gates, and one error per gate that cannot be set.
func newGates(features map[featuregate.Feature]featuregate.FeatureSpec, set map[string]bool) (featuregate.FeatureGate, error) {
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(features); err != nil {
		return nil, err
	}
	var errs field.ErrorList
	path := field.NewPath("featureGates")
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if err := gates.DeepCopy().SetFromMap(map[string]bool{name: set[name]}); err != nil {
			errs = append(errs, field.Invalid(path.Key(name), set[name], err.Error()))
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	return gates, gates.SetFromMap(set)
}

// Version is the version of Gardener that the program was built with.
func Version() string { return version.Get().GitVersion }
