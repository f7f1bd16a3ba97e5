package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// TestLoadBalancerSettings deploys the gateway with all settings of a Seed for load balancers, without and with an existing Service.
func TestLoadBalancerSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		existing *corev1.Service
		class    string
	}{
		"a new Service":                     {class: "fast"},
		"a Service, whose class is kept":    {existing: &corev1.Service{Spec: corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("slow")}}, class: "slow"},
		"a Service without a class is kept": {existing: &corev1.Service{Spec: corev1.ServiceSpec{Type: "LoadBalancer"}}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			if tc.existing != nil {
				tc.existing.ObjectMeta = metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"}
				create(t, clusters.Seed, tc.existing)
			}
			r := &reconciler{Values: Values{SeedAPI: clusters.Seed}}
			s := r.newRun(&corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Settings: &corev1beta1.SeedSettings{
				LoadBalancerServices: &corev1beta1.SeedSettingLoadBalancerServices{
					Annotations: map[string]string{"a": "b"}, Class: new("fast"), ExternalTrafficPolicy: new(corev1.ServiceExternalTrafficPolicyLocal),
					ProxyProtocol: &corev1beta1.LoadBalancerServicesProxyProtocol{Allowed: true},
				},
			}}})
			if err := s.deployGateway(t.Context()); err != nil {
				t.Fatal(err)
			}
			service := &corev1.Service{}
			if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "gateway", Name: "gateway"}, service); err != nil {
				t.Fatal(err)
			}
			got := []string{service.Annotations["a"], string(service.Spec.ExternalTrafficPolicy), ptr.Deref(service.Spec.LoadBalancerClass, "")}
			if diff := cmp.Diff([]string{"b", "Local", tc.class}, got); diff != "" {
				t.Errorf("Service (-want +got):\n%s", diff)
			}
			if !s.gatewayValues().ProxyProtocol {
				t.Error("the gateway does not accept the PROXY protocol")
			}
		})
	}
}
