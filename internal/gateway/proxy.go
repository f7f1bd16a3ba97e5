package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/gateway/terminator"
	"gardener.cloud/gardener/internal/process"
)

// ProxyName is the name of the command that ends TLS connections.
const ProxyName = "gardener-gateway-proxy"

// NewProxyCommand returns the command that ends TLS connections to kube-apiservers until its context ends. It is a process of its own, without a
// leader election: the controller exits when the API server of the seed is not reachable, but connections to shoots stay.
func NewProxyCommand() *cobra.Command {
	o := &options{}
	cmd := newCommand(ProxyName, "End TLS connections to kube-apiservers and spread their requests over the pods",
		"  "+ProxyName+" --gateway=gateway/gateway", o, proxyComponent)
	o.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&o.port, "port", terminatorPort, "port on the loopback address for connections of HAProxy")
	return cmd
}

// proxyComponent describes the process.
func proxyComponent() process.Component[options] {
	return process.Component[options]{
		Name: ProxyName, Settings: func(o *options) process.Settings { return o.settings() }, Kinds: []process.AddToScheme{gatewayv1.Install}, Options: cacheOptions,
		Wire: func(_ context.Context, p *process.Process, o *options) error {
			t, err := terminator.New(terminatorHost+":"+strconv.Itoa(o.port), p.Metrics, p.GetLogger(), clock.RealClock{})
			if err != nil {
				return err
			}
			return errors.Join(
				p.Add(t),
				p.AddReadyzCheck("routes", func(*http.Request) error { return t.Synced() }),
				addProxy(p.Manager, t, observer{client: p.GetClient(), gateway: o.key()}),
			)
		},
	}
}

// addProxy adds the controller that gives the kube-apiservers of a Gateway to a Terminator.
func addProxy(mgr manager.Manager, t *terminator.Terminator, o observer) error {
	c := &credentials{client: o.client, namespace: o.gateway.Namespace}
	return add(mgr, "servers", o.gateway, predicate.GenerationChangedPredicate{}, endpointsChanged(), controller.Options{NeedLeaderElection: new(false)}, c,
		&servers{observer: o, credentials: c, terminator: t})
}

// servers gives kube-apiservers to a Terminator, in every replica.
type servers struct {
	observer
	credentials *credentials
	terminator  *terminator.Terminator
}

// Reconcile sets the kube-apiservers whose connections end at the gateway.
func (s *servers) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	f, _, err := s.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if f == nil {
		s.terminator.Set(nil)
		return reconcile.Result{}, nil
	}
	if f.credentials, err = s.credentials.read(ctx); err != nil {
		return reconcile.Result{}, err
	}
	s.terminator.Set(decide(*f).servers)
	return reconcile.Result{}, nil
}

// endpointsChanged ignores changes of EndpointSlices that affect no address.
func endpointsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*discoveryv1.EndpointSlice), e.ObjectNew.(*discoveryv1.EndpointSlice) //nolint:forcetypeassert // only they are watched
		return !apiequality.Semantic.DeepEqual(before.Endpoints, after.Endpoints) || !apiequality.Semantic.DeepEqual(before.Ports, after.Ports) ||
			before.Labels[discoveryv1.LabelServiceName] != after.Labels[discoveryv1.LabelServiceName]
	}}
}
