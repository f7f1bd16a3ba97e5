package system

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/gateway"
)

func (s *run) deployGateway(ctx context.Context) error { return s.deploy(ctx, s.gatewayObjects()...) }

func (s *run) deleteGateway(ctx context.Context) error {
	return s.destroy(ctx, s.forDeletion().gatewayObjects()...)
}

// gatewayObjects are the objects of the gateway to the control planes, with the settings of the Seed for load balancers.
func (s *run) gatewayObjects() []client.Object {
	v := gateway.Values{ControllerImage: s.Images.Gardener, ProxyImage: s.Images.HAProxy, Replicas: s.replicas}
	if settings := s.seed.Spec.Settings; settings != nil && settings.LoadBalancerServices != nil {
		v.ServiceAnnotations = settings.LoadBalancerServices.Annotations
		v.ExternalTrafficPolicy = ptr.Deref(settings.LoadBalancerServices.ExternalTrafficPolicy, "")
	}
	return gateway.Objects(v)
}
