// Package machinecontroller has the two processes that create, replace and delete the machines of a cluster.
//
// The generic process machine-controller-manager reconciles MachineDeployments and MachineSets. The process of a provider, which runs beside it in the
// same pod, reconciles Machines with the driver for its infrastructure, and MachineClasses. Both serve one shoot: the objects in its namespace of the
// seed, the control cluster, and the Nodes of the shoot, the target cluster. They share nothing but these objects, so that either can be another
// implementation. See the packages of the controllers: machinedeployment, machineset; machine, machineclass, safety.
package machinecontroller

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/machinecontroller/machinedeployment"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
	"gardener.cloud/gardener/internal/process"
)

const (
	// Name is the name of the command of the generic process.
	Name = machinecontrollermanager.Name
	// Lease and ProviderLease are the Leases of the generic process and of the process of a provider.
	Lease, ProviderLease = Name, "machine-controller"
)

// NewCommand returns the command of the generic process. It has flags and no configuration file, for compatibility.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := newCommand(Name, "Replace the machines of a cluster when their template changes", &o.Common, o.Validate, func(ctx context.Context, log logr.Logger) error {
		return component().Run(ctx, o, log)
	})
	o.AddFlags(cmd.Flags())
	return cmd
}

func newCommand(name, short string, o *Common, validate func() error, run func(context.Context, logr.Logger) error) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  " + name + " --namespace=shoot--dev--crazy --target-kubeconfig=kubeconfig",
		Version: process.Version(), Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validate(); err != nil {
				return err
			}
			log := process.NewLogger(cmd.ErrOrStderr(), o.logLevel(), o.LogFormat)
			crlog.SetLogger(log)
			klog.SetLogger(log)
			return run(cmd.Context(), log)
		},
	}
}

// component describes the generic process.
func component() process.Component[Options] {
	return process.Component[Options]{
		Name: Name, Settings: func(o *Options) process.Settings { return o.settings() }, Kinds: []process.AddToScheme{machinev1alpha1.AddToScheme},
		Options: func(o *Options, options *manager.Options) {
			options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
		},
		Wire: func(_ context.Context, p *process.Process, o *Options) error { return wire(p, o) },
	}
}

func wire(p *process.Process, o *Options) error {
	target, _, err := o.addTarget(p)
	if err != nil {
		return err
	}
	realClock := clock.RealClock{}
	return errors.Join(
		p.Metrics.Register(&setCollector{controlCache: p.GetClient(), namespace: o.Namespace}),
		machineset.Add(p, machineset.Values{
			Burst: machineBurst, SafetyUp: o.SafetyUp, SafetyDown: o.SafetyDown, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock,
		}),
		machinedeployment.Add(p, machinedeployment.Values{Target: target, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock}),
	)
}

// addTarget adds the target cluster to a process.
func (o *Common) addTarget(p *process.Process) (cluster.Cluster, *rest.Config, error) {
	kubeconfig := o.TargetKubeconfig
	if kubeconfig == "" {
		kubeconfig = o.ControlKubeconfig
	}
	config, err := process.ClientConfig(o.connection(kubeconfig))
	if err != nil {
		return nil, nil, fmt.Errorf("target cluster: %w", err)
	}
	target, err := p.AddCluster("target", config, func(options *cluster.Options) {
		options.Scheme = p.GetScheme()
		options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: withoutImages}}
		options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}, &corev1.Secret{}, &storagev1.VolumeAttachment{}}}
	})
	return target, config, err
}

// withoutImages removes the fields of a Node that no controller reads, of which the list of its images is the largest.
func withoutImages(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return object, nil
}
