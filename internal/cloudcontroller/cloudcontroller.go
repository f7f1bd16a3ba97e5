// Package cloudcontroller has the processes that give Services of type LoadBalancer of a shoot an address. The cloud-controller-manager of local
// infrastructures has the service controller of k8s.io/cloud-provider: a load balancer is a Service in the cluster with the machines, so that cluster
// decides what its address is. The one of hosts claims addresses from provider-hosts.
package cloudcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/cloud-provider/controllers/service"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/component/localcloudcontroller"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/pkg/destination"
)

const (
	// Name is the name of the command.
	Name = localcloudcontroller.Command
	// workers is how many Services are reconciled at a time.
	workers = 5
)

// Options are the flags.
type Options struct {
	// Kubeconfig is for the shoot.
	Kubeconfig string
	// Infrastructure is the cluster with the machines.
	Infrastructure process.OtherCluster
	// Namespace is that of the control plane.
	Namespace string
	// Port is where metrics and probes are served.
	Port int
	// LogLevel and LogFormat are those of all processes.
	LogLevel, LogFormat string
}

// NewCommand returns the command for shoots with local machines.
func NewCommand() *cobra.Command {
	o := &Options{Port: int(localcloudcontroller.Port), Infrastructure: process.OtherCluster{Blocked: destination.Host}}
	cmd := newCommand(Name, "Give Services of a shoot with local machines addresses", o, Run)
	o.Infrastructure.AddFlags(cmd.Flags())
	return cmd
}

// newCommand returns a command with the flags that both processes have.
func newCommand(name, short string, o *Options, run func(context.Context, *Options, logr.Logger) error) *cobra.Command {
	o.LogLevel, o.LogFormat = "info", "json"
	cmd := &cobra.Command{
		Use: name, Short: short,
		Example: "  " + name + " --namespace=shoot--dev--crazy --kubeconfig=kubeconfig",
		Version: process.Version(), Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Namespace == "" || o.Kubeconfig == "" {
				return errors.New("--namespace and --kubeconfig must be set")
			}
			log := process.NewLogger(cmd.ErrOrStderr(), o.LogLevel, o.LogFormat)
			crlog.SetLogger(log)
			klog.SetLogger(log)
			return run(cmd.Context(), o, log)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig of the shoot")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the control plane")
	fs.IntVar(&o.Port, "port", o.Port, "port of /metrics, /healthz and /readyz")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "info, debug or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json or text")
	return cmd
}

// Run runs the process until the context ends.
func Run(ctx context.Context, o *Options, log logr.Logger) error { return component().Run(ctx, o, log) }

// component describes the process. One replica runs at a time, so there is no leader to elect.
func component() process.Component[Options] {
	return process.Component[Options]{
		Name: Name,
		Settings: func(o *Options) process.Settings {
			server := &process.Server{Port: o.Port}
			return process.Settings{
				Client:   componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.Kubeconfig},
				LogLevel: o.LogLevel, LogFormat: o.LogFormat, Health: server, Metrics: server,
			}
		},
		Wire: wire,
	}
}

func wire(ctx context.Context, p *process.Process, o *Options) error {
	config, err := o.Infrastructure.Config()
	if err == nil && config == nil {
		config, err = process.ClientConfig(componentbaseconfigv1alpha1.ClientConnectionConfiguration{})
	}
	if err != nil {
		return err
	}
	machines, err := client.New(config, client.Options{Scheme: p.GetScheme()})
	if err != nil {
		return fmt.Errorf("cluster with the machines: %w", err)
	}
	if err := o.Infrastructure.Check(ctx, machines); err != nil {
		return err
	}
	shoot, err := kubernetes.NewForConfig(rest.AddUserAgent(p.GetConfig(), Name))
	if err != nil {
		return err
	}
	return p.Add(serve(shoot, &balancer{
		client: machines, namespace: localv1alpha1.InfrastructureNamespace(o.Namespace), machines: localv1alpha1.MachineLabels(),
	}, p.GetLogger()))
}

// serve runs the service controller.
func serve(shoot kubernetes.Interface, balancer *balancer, log logr.Logger) manager.RunnableFunc {
	return func(ctx context.Context) error {
		const never = 0 * time.Second // watches deliver every change
		factory := informers.NewSharedInformerFactory(shoot, never)
		controller, err := service.New(balancer, shoot, factory.Core().V1().Services(), factory.Core().V1().Nodes(), Name, utilfeature.DefaultFeatureGate)
		if err != nil {
			return err
		}
		factory.Start(ctx.Done())
		log.Info("Serving load balancers", "namespace", balancer.namespace)
		controller.Run(ctx, workers, controllers.NewControllerManagerMetrics(Name))
		return nil
	}
}
