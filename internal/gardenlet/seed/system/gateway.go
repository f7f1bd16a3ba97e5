package system

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/gateway"
)

func (s *run) deployGateway(ctx context.Context) error {
	v := s.gatewayValues()
	// Kubernetes refuses another class while the Service exists.
	service, key := &corev1.Service{}, client.ObjectKey{Namespace: gateway.Namespace, Name: gateway.Name}
	if err := s.SeedAPI.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Service %q: %w", key, err)
	} else if err == nil && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		v.LoadBalancerClass = service.Spec.LoadBalancerClass
	}
	return s.deploy(ctx, gateway.Objects(v)...)
}

func (s *run) deleteGateway(ctx context.Context) error {
	return s.destroy(ctx, s.forDeletion().gatewayObjects()...)
}

func (s *run) gatewayObjects() []client.Object { return gateway.Objects(s.gatewayValues()) }

// gatewayValues are the values of the gateway to the control planes, with the settings of the Seed for load balancers.
func (s *run) gatewayValues() gateway.Values {
	v := gateway.Values{ControllerImage: s.Images.Gardener, ProxyImage: s.Images.HAProxy, Replicas: s.replicas}
	if settings := s.seed.Spec.Settings; settings != nil && settings.LoadBalancerServices != nil {
		services := settings.LoadBalancerServices
		v.ServiceAnnotations, v.LoadBalancerClass = services.Annotations, services.Class
		v.ExternalTrafficPolicy = ptr.Deref(services.ExternalTrafficPolicy, "")
		v.ProxyProtocol = services.ProxyProtocol != nil && services.ProxyProtocol.Allowed
	}
	return v
}
