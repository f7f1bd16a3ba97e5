package cloudcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	cloudprovider "k8s.io/cloud-provider"
	cloudapi "k8s.io/cloud-provider/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/kube"
)

const (
	// addressRecheck is how often it is checked whether the infrastructure has assigned an address: the service controller can only be told to try again.
	addressRecheck = 2 * time.Second
	// ServiceLabel is on Services of the infrastructure. Its value is the namespace and the name of the one in the shoot, or a hash if they are too long.
	ServiceLabel = "provider-local.gardener.cloud/service"
)

// balancer is a cloud provider with load balancers only. Each is a Service beside the machines, in the cluster of the infrastructure, which forwards to
// the node ports of the shoot's Service.
type balancer struct {
	client    client.Client
	namespace string
	machines  map[string]string
}

var (
	_ cloudprovider.Interface    = &balancer{}
	_ cloudprovider.LoadBalancer = &balancer{}
)

// GetLoadBalancer returns the addresses of a load balancer, and whether it exists.
func (b *balancer) GetLoadBalancer(ctx context.Context, cluster string, service *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	existing := &corev1.Service{}
	err := b.client.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: b.GetLoadBalancerName(ctx, cluster, service)}, existing)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the Service of the infrastructure: %w", err)
	}
	return &existing.Status.LoadBalancer, true, nil
}

// GetLoadBalancerName returns the name of the Service of the infrastructure, which has the UID of the shoot's.
func (b *balancer) GetLoadBalancerName(_ context.Context, _ string, service *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

// EnsureLoadBalancer applies the Service of the infrastructure, and returns its addresses.
func (b *balancer) EnsureLoadBalancer(ctx context.Context, cluster string, service *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	wanted, err := b.render(b.GetLoadBalancerName(ctx, cluster, service), service)
	if err != nil {
		return nil, err
	}
	if err := kube.Apply(ctx, b.client, Name, b.policy(wanted), wanted); err != nil {
		return nil, err
	}
	status, _, err := b.GetLoadBalancer(ctx, cluster, service)
	if err != nil {
		return nil, err
	}
	if status == nil || len(status.Ingress) == 0 {
		return nil, cloudapi.NewRetryError("the infrastructure has not assigned an address yet", addressRecheck)
	}
	return status, nil
}

// render returns the Service of the infrastructure.
func (b *balancer) render(name string, service *corev1.Service) (*corev1.Service, error) {
	if service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		return nil, errors.New("spec.externalTrafficPolicy: Local is not supported by provider-local, whose load balancers forward to all nodes: use Cluster")
	}
	out := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{ServiceLabel: kube.LabelValue(service.Namespace + "." + service.Name)}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: b.machines, SessionAffinity: service.Spec.SessionAffinity,
			LoadBalancerSourceRanges: service.Spec.LoadBalancerSourceRanges,
		},
	}
	for _, port := range service.Spec.Ports {
		if port.NodePort == 0 {
			return nil, fmt.Errorf("spec.ports: port %d has no node port, which provider-local needs: set spec.allocateLoadBalancerNodePorts", port.Port)
		}
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, Port: port.Port, TargetPort: intstr.FromInt32(port.NodePort),
		})
	}
	return out, nil
}

// policy returns a NetworkPolicy that opens the node ports of a load balancer: machines are isolated. Its source ranges are for the load balancer, which may
// hide the address of a client from the machines.
func (b *balancer) policy(service *corev1.Service) *networkingv1.NetworkPolicy {
	rule := networkingv1.NetworkPolicyIngressRule{}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: &port.Protocol, Port: &port.TargetPort})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: service.Labels},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: b.machines},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: []networkingv1.NetworkPolicyIngressRule{rule},
		},
	}
}

// UpdateLoadBalancer has nothing to do: machines are selected by their label.
func (b *balancer) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted deletes the Service of the infrastructure, and its policy.
func (b *balancer) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, service *corev1.Service) error {
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: b.GetLoadBalancerName(ctx, cluster, service)}
	for _, object := range []client.Object{&corev1.Service{ObjectMeta: meta}, &networkingv1.NetworkPolicy{ObjectMeta: meta}} {
		if err := b.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q of the infrastructure: %w", object, meta.Name, err)
		}
	}
	return nil
}

// The rest of cloudprovider.Interface: nodes are of no interest here.

func (b *balancer) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

func (b *balancer) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return b, true }

func (b *balancer) Instances() (cloudprovider.Instances, bool) { return nil, false }

func (b *balancer) InstancesV2() (cloudprovider.InstancesV2, bool) { return nil, false }

func (b *balancer) Zones() (cloudprovider.Zones, bool) { return nil, false }

func (b *balancer) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

func (b *balancer) Routes() (cloudprovider.Routes, bool) { return nil, false }

func (b *balancer) ProviderName() string { return "local" }

func (b *balancer) HasClusterID() bool { return true }
