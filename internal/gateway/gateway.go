// Package gateway implements a Gateway of gateway.networking.k8s.io with HAProxy: TLS connections are passed through to Services by their
// server name (SNI).
//
// One controller runs beside each HAProxy and changes its maps at run time. It reads Gateways, TLSRoutes, Services, their endpoints and
// namespaces, and the leader of all replicas writes the status of the Gateway, of its class and of the routes. The backend of a route is the
// cluster IP of a Service. Another process beside HAProxy ends the connections of routes that have credentials, see terminator. Source: design of
// the networks, "Into the control plane".
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
)

const (
	// Name is the name of the command.
	Name = "gardener-gateway-controller"
	// ControllerName is spec.controllerName of the GatewayClass of this controller.
	ControllerName gatewayv1.GatewayController = "gardener.cloud/gateway-controller"
)

// options are the flags. Some are those of one of both commands only.
type options struct {
	gateway     string
	service     string
	directory   string
	terminate   bool
	port        int
	logLevel    string
	healthPort  int
	metricsPort int
	kubeconfig  string
	elect       bool
}

// key is the Gateway.
func (o *options) key() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// addFlags adds the flags of both commands.
func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.gateway, "gateway", "", "namespace and name of the Gateway to serve")
	flags.StringVar(&o.logLevel, "log-level", "info", "info, debug or error")
	flags.IntVar(&o.healthPort, "health-port", 8081, "port of /healthz and /readyz")
	flags.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; by default the cluster of the pod")
}

// settings are those of both processes.
func (o *options) settings() process.Settings {
	return process.Settings{
		Client:   componentbaseconfigv1alpha1.ClientConnectionConfiguration{Kubeconfig: o.kubeconfig, QPS: 100, Burst: 130},
		LogLevel: o.logLevel, LogFormat: "json",
		Health: &process.Server{Port: o.healthPort}, Metrics: &process.Server{Port: o.metricsPort},
	}
}

// NewCommand returns the command that runs the controller until its context ends.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := newCommand(Name, "Configure HAProxy to pass TLS connections through to Services",
		"  "+Name+" --gateway=gateway/gateway --directory=/run/gateway", o, component)
	flags := cmd.Flags()
	o.addFlags(flags)
	flags.StringVar(&o.service, "service", "", "name of the Service in front of HAProxy, beside the Gateway; by default that of the Gateway")
	flags.StringVar(&o.directory, "directory", "/run/gateway", "directory with HAProxy's socket and maps")
	flags.BoolVar(&o.terminate, "terminate-tls", false, "end TLS connections of routes that have credentials, with "+ProxyName+" in the same pod")
	flags.BoolVar(&o.elect, "leader-elect", true, "elect one of several replicas to write the status")
	return cmd
}

// newCommand returns a command without flags. There are flags instead of a configuration file, as only names, ports and paths are needed.
func newCommand(name, short, example string, o *options, component func() process.Component[options]) *cobra.Command {
	return &cobra.Command{
		Use:           name,
		Short:         short,
		Example:       example,
		Version:       process.Version(),
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := run(cmd, o, component())
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
			}
			return err
		},
	}
}

func run(cmd *cobra.Command, o *options, c process.Component[options]) error {
	if key := o.key(); key.Namespace == "" || key.Name == "" {
		return errors.New("--gateway is missing; set it to NAMESPACE/NAME")
	}
	log := process.NewLogger(cmd.ErrOrStderr(), o.logLevel, "json")
	crlog.SetLogger(log)
	klog.SetLogger(log)
	return c.Run(cmd.Context(), o, log)
}

// component describes the process.
func component() process.Component[options] {
	return process.Component[options]{
		Name: Name,
		Settings: func(o *options) process.Settings {
			s := o.settings()
			if o.elect {
				election := &componentbaseconfigv1alpha1.LeaderElectionConfiguration{}
				componentbaseconfigv1alpha1.RecommendedDefaultLeaderElectionConfiguration(election)
				key := o.key()
				election.ResourceLock, election.ResourceNamespace, election.ResourceName = "leases", key.Namespace, Name+"-"+key.Name
				s.LeaderElection = election
			}
			return s
		},
		Kinds:   []process.AddToScheme{gatewayv1.Install},
		Options: cacheOptions,
		Wire: func(_ context.Context, p *process.Process, o *options) error {
			key := o.key()
			front := types.NamespacedName{Namespace: key.Namespace, Name: cmp.Or(o.service, key.Name)}
			programmer := haproxy.NewProgrammer(o.directory, clock.RealClock{})
			return errors.Join(
				p.Add(programmer),
				p.AddReadyzCheck("haproxy", func(*http.Request) error { return programmer.Synced() }),
				Add(p.Manager, p.Metrics, programmer, key, front, o.terminate),
			)
		},
	}
}

// metrics are those of the controller.
type metrics struct {
	hosts prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer, programmer *haproxy.Programmer) (*metrics, error) {
	m := &metrics{hosts: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gateway_controller_hosts", Help: "Number of host names and wildcards with a backend.",
	})}
	return m, errors.Join(registry.Register(m.hosts), registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_controller_synced", Help: "1 if HAProxy has the routes of the cluster, else 0.",
	}, func() float64 {
		if programmer.Synced() == nil {
			return 1
		}
		return 0
	})))
}

// Add adds the controllers of a Gateway to a manager. The Service is the one in front of all HAProxies of the Gateway. With terminate, connections of
// routes with credentials go to the process of NewProxyCommand.
func Add(
	mgr manager.Manager, registry prometheus.Registerer, programmer *haproxy.Programmer, gateway, front types.NamespacedName, terminate bool,
) error {
	m, err := newMetrics(registry, programmer)
	if err != nil {
		return err
	}
	o := observer{client: mgr.GetClient(), gateway: gateway, front: front}
	var c *credentials
	if terminate {
		c = &credentials{client: mgr.GetClient(), namespace: gateway.Namespace}
	}
	return errors.Join(
		// The status has no influence on routes.
		add(mgr, "routes", gateway, predicate.GenerationChangedPredicate{}, servingChanged(), controller.Options{NeedLeaderElection: new(false)}, c,
			&router{observer: o, credentials: c, programmer: programmer, metrics: m}),
		add(mgr, "status", gateway, reportedChanged(), servingChanged(), controller.Options{}, nil, &reporter{o}),
	)
}

// add adds one of the controllers. Every event enqueues the Gateway with all its routes, as routes may have the same host names.
func add(
	mgr manager.Manager, name string, gateway types.NamespacedName, changed, endpoints predicate.Predicate, o controller.Options, c *credentials,
	r reconcile.Reconciler,
) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: gateway}}
	})
	spec := builder.WithPredicates(changed)
	b := builder.ControllerManagedBy(mgr).Named(name).WithOptions(o).
		Watches(&gatewayv1.Gateway{}, all, spec).
		Watches(&gatewayv1.GatewayClass{}, all, spec).
		Watches(&gatewayv1.TLSRoute{}, all, spec).
		Watches(&corev1.Service{}, all, builder.WithPredicates(serviceChanged())).
		Watches(&discoveryv1.EndpointSlice{}, all, builder.WithPredicates(endpoints)).
		// A listener may select namespaces by their labels.
		Watches(&corev1.Namespace{}, all, builder.WithPredicates(predicate.LabelChangedPredicate{}))
	return c.watch(b, all).Complete(r)
}

// reportedChanged passes changes of specs, and of the status, which the controller writes itself: one that was decided by an old cache is corrected.
func reportedChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{},
		kube.StatusChanged(func(g *gatewayv1.Gateway) any { return g.Status }),
		kube.StatusChanged(func(c *gatewayv1.GatewayClass) any { return c.Status }),
		kube.StatusChanged(func(r *gatewayv1.TLSRoute) any { return r.Status }))
}

// serviceChanged ignores changes that do not affect the addresses of a Service.
func serviceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Service), e.ObjectNew.(*corev1.Service) //nolint:forcetypeassert // only Services are watched
		return !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) || !apiequality.Semantic.DeepEqual(before.Status, after.Status)
	}}
}

// servingChanged ignores changes of endpoints that do not affect whether there is a ready one.
func servingChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, _ := e.ObjectOld.(*discoveryv1.EndpointSlice)
		after, _ := e.ObjectNew.(*discoveryv1.EndpointSlice)
		return serves(before) != serves(after) || before.Labels[discoveryv1.LabelServiceName] != after.Labels[discoveryv1.LabelServiceName]
	}}
}
