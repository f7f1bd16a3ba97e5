package dns

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// Termination says how the gateway ends the TLS connections of a kube-apiserver.
type Termination struct {
	// Credentials are read after the task credentials.
	Credentials *credentials.Set
}

// task returns the task that writes the credentials of the gateway. While CAs are replaced, the gateway may use a certificate of the new one
// when all pods of kube-apiserver trust it. It comes after the route, which is the one that the credentials are for.
func (t *Termination) task(in Inputs) flow.Task {
	return flow.Do("gateway-credentials", "Writing the credentials of kube-apiserver for the gateway", func(ctx context.Context) error {
		return t.write(ctx, in)
	}, "exposure", "credentials").IfPresent("kube-apiserver-ready")
}

func (t *Termination) write(ctx context.Context, in Inputs) error {
	set, err := t.Credentials.All()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Name: in.Run.Namespace}, namespace); err != nil {
		return fmt.Errorf("read Namespace %q: %w", in.Run.Namespace, err)
	}
	server, proxy := set.Current(credentials.KubeAPIServer), set.Current(credentials.GatewayProxy)
	if server == nil || proxy == nil {
		return fmt.Errorf("%s or %s was not generated", credentials.KubeAPIServer, credentials.GatewayProxy)
	}
	return in.Run.Apply(ctx, gateway.Credentials{
		Namespace: in.gateway().Namespace, Route: in.route(), RouteNamespaceUID: namespace.UID,
		Data: map[string][]byte{
			gateway.KeyCertificate: server.Data[secrets.DataKeyCertificate], gateway.KeyPrivateKey: server.Data[secrets.DataKeyPrivateKey],
			gateway.KeyProxyCertificate: proxy.Data[secrets.DataKeyCertificate], gateway.KeyProxyPrivateKey: proxy.Data[secrets.DataKeyPrivateKey],
			gateway.KeyClientCA: set.Bundle(constants.SecretNameCAClient), gateway.KeyServerCA: set.Bundle(constants.SecretNameCACluster),
		},
	}.Secret())
}

// loadBalancing says how pods of the control plane reach the kube-apiserver through the gateway. The name is that of its Service, by which they reach
// it directly without a host alias. Its certificate has the name.
func (in Inputs) loadBalancing() gateway.LoadBalancing {
	return gateway.LoadBalancing{Namespace: in.gateway().Namespace, Hosts: []string{kubeapiserver.ServiceHost(in.Run.Namespace)}}
}

// loadBalancingTask returns the task that lets gardener-resource-manager of the seed send new pods to the gateway. It comes before pods with the
// kubeconfig that has the name.
func (in Inputs) loadBalancingTask() flow.Task {
	return flow.Do("load-balancing", "Sending pods of the control plane to the gateway", func(ctx context.Context) error {
		return in.Run.Apply(ctx, in.loadBalancing().ConfigMap(in.Run.Namespace))
	}, "exposure")
}

// routed are the names that the gateway is to know: those of clients, and the one for pods of the control plane. That one stays when connections are
// passed through again, as there are pods with host aliases until all are replaced.
func (in Inputs) routed(ctx context.Context) ([]string, error) {
	internal := in.loadBalancing().Hosts
	if in.Termination != nil {
		return slices.Concat(in.Hosts, internal), nil
	}
	routes := &gatewayv1.TLSRouteList{} // the gardenlet may list them, but not get them
	if err := in.Run.SeedAPI.List(ctx, routes, client.InNamespace(in.Run.Namespace)); err != nil {
		return nil, fmt.Errorf("list TLSRoutes in Namespace %q: %w", in.Run.Namespace, err)
	}
	for i := range routes.Items {
		if route := &routes.Items[i]; route.Name == in.route().Name && slices.Contains(route.Spec.Hostnames, gatewayv1.Hostname(internal[0])) {
			return slices.Concat(in.Hosts, internal), nil
		}
	}
	return in.Hosts, nil
}
