// Package announcer has the process on nodes that answers for the addresses of load balancers. One node answers for an address: the holder of its Lease.
// There, the kernel has the address on the network interface whose network it is in, and kube-proxy does the rest.
package announcer

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/internal/process"
)

const (
	// Name is the name of the command.
	Name = "address-announcer"
	// port is where metrics and probes are served, in the network of the node.
	port = 16912
)

// Options are the flags.
type Options struct {
	// Node is the name of the node that the process runs on.
	Node string
	// Port is where metrics and probes are served.
	Port int
	// LogLevel and LogFormat are those of all processes.
	LogLevel, LogFormat string
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := &Options{Port: port, LogLevel: "info", LogFormat: "json"}
	cmd := &cobra.Command{
		Use: Name, Short: "Answer for addresses of load balancers on a node",
		Example: "  " + Name + " --node=server-1",
		Version: process.Version(), Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Node == "" {
				return errors.New("--node must be set")
			}
			log := process.NewLogger(cmd.ErrOrStderr(), o.LogLevel, o.LogFormat)
			crlog.SetLogger(log)
			klog.SetLogger(log)
			return component().Run(cmd.Context(), o, log)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Node, "node", o.Node, "name of the node that the process runs on")
	fs.IntVar(&o.Port, "port", o.Port, "port of /metrics, /healthz and /readyz")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "info, debug or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	return cmd
}

// component describes the process. There is one per node, so there is no leader to elect.
func component() process.Component[Options] {
	return process.Component[Options]{
		Name: Name,
		Settings: func(o *Options) process.Settings {
			server := &process.Server{Port: o.Port}
			return process.Settings{LogLevel: o.LogLevel, LogFormat: o.LogFormat, Health: server, Metrics: server}
		},
		Options: func(_ *Options, options *manager.Options) { options.Cache.ByObject = CachedObjects() },
		Wire: func(_ context.Context, p *process.Process, o *Options) error {
			a := &Announcer{Client: p.GetClient(), Network: &interfaces{}, Clock: clock.RealClock{}, Node: o.Node}
			return errors.Join(a.Add(p, Name), p.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "address_announcer_addresses", Help: "Number of addresses that the node answers for.",
			}, func() float64 { return float64(a.Held()) })))
		},
	}
}

// CachedObjects limits the cache of a manager to what an Announcer reads.
func CachedObjects() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{hostsv1alpha1.LeaseNamespace: {}}},
		&corev1.Node{}: {Transform: func(object any) (any, error) {
			if node, ok := object.(*corev1.Node); ok { // the list of images is the largest part
				node.ManagedFields, node.Status.Images = nil, nil
			}
			return object, nil
		}},
	}
}
