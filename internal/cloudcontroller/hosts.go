package cloudcontroller

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/internal/cloudcontroller/claim"
	"gardener.cloud/gardener/internal/component/localcloudcontroller"
	"gardener.cloud/gardener/internal/process"
)

// HostsName is the name of the command for shoots whose nodes are hosts.
const HostsName = localcloudcontroller.Name + "-hosts"

// NewHostsCommand returns the command for shoots whose nodes are hosts.
func NewHostsCommand() *cobra.Command {
	o := &Options{Port: int(localcloudcontroller.Port)}
	return newCommand(HostsName, "Give Services of a shoot whose nodes are hosts addresses", o, func(ctx context.Context, o *Options, log logr.Logger) error {
		return hostsComponent().Run(ctx, o, log)
	})
}

// hostsComponent describes the process. Its own cluster is the seed, with the claims of the control plane. One replica runs at a time.
func hostsComponent() process.Component[Options] {
	return process.Component[Options]{
		Name: HostsName, Kinds: []process.AddToScheme{hostsv1alpha1.AddToScheme},
		Settings: func(o *Options) process.Settings {
			server := &process.Server{Port: o.Port}
			return process.Settings{LogLevel: o.LogLevel, LogFormat: o.LogFormat, Health: server, Metrics: server}
		},
		Options: func(o *Options, options *manager.Options) {
			options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
		},
		Wire: func(_ context.Context, p *process.Process, o *Options) error {
			config, err := process.ClientConfig(componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.Kubeconfig})
			if err != nil {
				return err
			}
			shoot, err := p.AddCluster("shoot", config, func(options *cluster.Options) { options.Scheme = p.GetScheme() })
			if err != nil {
				return err
			}
			return claim.Add(p, shoot, o.Namespace)
		},
	}
}
