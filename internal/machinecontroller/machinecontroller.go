// Package machinecontroller is machine-controller-manager, which creates, replaces and deletes the machines of a cluster.
//
// One process serves one shoot: the Machines in its namespace of the seed, the control cluster, and the Nodes of the shoot, the target
// cluster. See the packages of the controllers: machine, machineset, machinedeployment, machineclass, safety.
package machinecontroller

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/internal/machinecontroller/driver/local"
	"gardener.cloud/gardener/internal/machinecontroller/machine"
	"gardener.cloud/gardener/internal/machinecontroller/machineclass"
	"gardener.cloud/gardener/internal/machinecontroller/machinedeployment"
	"gardener.cloud/gardener/internal/machinecontroller/machineset"
	"gardener.cloud/gardener/internal/machinecontroller/safety"
	"gardener.cloud/gardener/internal/process"
)

// Name is the name of the command.
const Name = "machine-controller-manager"

// NewCommand returns the command. It has flags and no configuration file, for compatibility.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:     Name,
		Short:   "Create, replace and delete the machines of a cluster",
		Example: "  " + Name + " --namespace=shoot--dev--crazy --target-kubeconfig=kubeconfig",
		Version: process.Version(), Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			log := process.NewLogger(cmd.ErrOrStderr(), o.LogLevel, o.LogFormat)
			crlog.SetLogger(log)
			klog.SetLogger(log)
			return component(newDriver).Run(cmd.Context(), o, log)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// newDriver returns the driver that the flags select.
func newDriver(p *process.Process, _ *Options) driver.Driver {
	return local.New(p.GetClient(), p.GetCache())
}

// component describes the process. A test has another driver.
func component(newDriver func(*process.Process, *Options) driver.Driver) process.Component[Options] {
	return process.Component[Options]{
		Name: Name, Settings: (*Options).settings, Kinds: []process.AddToScheme{machinev1alpha1.AddToScheme},
		Options: func(o *Options, options *manager.Options) {
			options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
			options.Cache.ByObject = map[client.Object]cache.ByObject{
				// The namespace has many pods of other components.
				&corev1.Pod{}: {Label: labels.SelectorFromSet(labels.Set{local.LabelApp: local.LabelAppValue})},
			}
			options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}, &corev1.Secret{}}}
		},
		Wire: func(_ context.Context, p *process.Process, o *Options) error { return wire(p, o, newDriver(p, o)) },
	}
}

func wire(p *process.Process, o *Options, d driver.Driver) error {
	targetKubeconfig := o.TargetKubeconfig
	if targetKubeconfig == "" {
		targetKubeconfig = o.ControlKubeconfig
	}
	targetConfig, err := process.ClientConfig(o.connection(targetKubeconfig))
	if err != nil {
		return fmt.Errorf("target cluster: %w", err)
	}
	target, err := p.AddCluster("target", targetConfig, func(options *cluster.Options) {
		options.Scheme = p.GetScheme()
		options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: withoutImages}}
		options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}, &corev1.Secret{}, &storagev1.VolumeAttachment{}}}
	})
	if err != nil {
		return err
	}
	realClock := clock.RealClock{}
	reachability, err := safety.NewReachability(targetConfig, o.StatusCheckPeriod, o.StatusCheckTimeout, realClock)
	if err != nil {
		return err
	}
	if d, err = newCounted(d, o.Provider, p.Metrics); err != nil {
		return err
	}
	return errors.Join(
		p.Add(reachability),
		p.Add(&safety.Orphans{
			ControlAPI: p.GetAPIReader(), TargetCache: target.GetClient(), Namespace: o.Namespace, Driver: d, Credentials: machine.Credentials,
			Period: o.OrphansPeriod, Clock: realClock,
		}),
		p.Metrics.Register(&collector{controlCache: p.GetClient(), namespace: o.Namespace, frozen: func() bool {
			_, reachable := reachability.State()
			return !reachable
		}}),
		machine.Add(p, machine.Values{
			Target: target, Driver: d, PVDetachTimeout: o.PVDetachTimeout, MaxReplaced: o.MaxReplaced, TokenGroups: o.TokenGroups,
			Limits: machine.Limits{
				Creation: o.CreationTimeout, Health: o.HealthTimeout, Drain: o.DrainTimeout,
				MaxEvictRetries: o.MaxEvictRetries, NodeConditions: o.NodeConditions,
			},
			Reachable: reachability.State, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock,
		}),
		machineset.Add(p, machineset.Values{
			Burst: machineBurst, SafetyUp: o.SafetyUp, SafetyDown: o.SafetyDown, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock,
		}),
		machinedeployment.Add(p, machinedeployment.Values{Target: target, ConcurrentSyncs: o.ConcurrentSyncs, Clock: realClock}),
		machineclass.Add(p, machineclass.Values{ConcurrentSyncs: o.ConcurrentSyncs}),
	)
}

// withoutImages removes the fields of a Node that no controller reads, of which the list of its images is the largest.
func withoutImages(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields, node.Status.Images = nil, nil
	}
	return object, nil
}
