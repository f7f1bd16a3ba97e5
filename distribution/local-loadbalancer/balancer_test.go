package main

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEnsureLoadBalancer(t *testing.T) {
	for name, tc := range map[string]struct {
		others    []*corev1.Service
		service   *corev1.Service
		want      string
		wantError string
	}{
		"the first Service gets the first address":    {service: svc("a", ""), want: "172.30.0.128"},
		"the lowest free address is taken":            {others: []*corev1.Service{svc("x", "172.30.0.128"), svc("y", "172.30.0.130")}, service: svc("a", ""), want: "172.30.0.129"},
		"a Service keeps its address":                 {others: []*corev1.Service{svc("x", "172.30.0.128")}, service: svc("a", "172.30.0.130"), want: "172.30.0.130"},
		"an address outside of the pool is replaced":  {service: svc("a", "10.0.0.1"), want: "172.30.0.128"},
		"an address that another one has is replaced": {others: []*corev1.Service{svc("x", "172.30.0.128")}, service: svc("a", "172.30.0.128"), want: "172.30.0.129"},
		"a free requested address is assigned":        {service: requesting(svc("a", "172.30.0.128"), "172.30.0.131"), want: "172.30.0.131"},
		"a used requested address is refused": {
			others: []*corev1.Service{svc("x", "172.30.0.128")}, service: requesting(svc("a", ""), "172.30.0.128"),
			wantError: "spec.loadBalancerIP: 172.30.0.128 is used by Service default/x",
		},
		"a requested address outside of the pool is refused": {
			service: requesting(svc("a", ""), "10.0.0.1"), wantError: `spec.loadBalancerIP: "10.0.0.1" is not in the pool 172.30.0.128/30`,
		},
		"an empty pool is an error": {
			others:    []*corev1.Service{svc("w", "172.30.0.128"), svc("x", "172.30.0.129"), svc("y", "172.30.0.130"), svc("z", "172.30.0.131")},
			service:   svc("a", ""),
			wantError: "all 4 addresses of the pool 172.30.0.128/30 are in use; delete a LoadBalancer Service",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBalancer(netip.MustParsePrefix("172.30.0.128/30"), func() ([]*corev1.Service, error) { return tc.others, nil })
			got, err := b.EnsureLoadBalancer(t.Context(), "", tc.service, nil)
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError {
					t.Errorf("error = %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Ingress[0].IP); diff != "" {
				t.Errorf("address (-want +got):\n%s", diff)
			}
		})
	}
}

// Two Services at once are served one after the other, before the first one's status is in the cache.
func TestReservations(t *testing.T) {
	b := newBalancer(netip.MustParsePrefix("172.30.0.128/30"), func() ([]*corev1.Service, error) { return nil, nil })
	ctx := t.Context()
	first, _ := b.EnsureLoadBalancer(ctx, "", svc("a", ""), nil)
	second, _ := b.EnsureLoadBalancer(ctx, "", svc("b", ""), nil)
	if first.Ingress[0].IP == second.Ingress[0].IP {
		t.Errorf("both got %s", first.Ingress[0].IP)
	}
	if err := b.EnsureLoadBalancerDeleted(ctx, "", svc("a", "")); err != nil {
		t.Fatal(err)
	}
	if _, exists, _ := b.GetLoadBalancer(ctx, "", svc("a", "")); exists {
		t.Error("a deleted Service still has an address")
	}
	third, _ := b.EnsureLoadBalancer(ctx, "", svc("c", ""), nil)
	if diff := cmp.Diff(first.Ingress[0].IP, third.Ingress[0].IP); diff != "" {
		t.Errorf("a returned address is not used again (-want +got):\n%s", diff)
	}
}

func svc(name, ip string) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if ip != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	}
	return service
}

func requesting(service *corev1.Service, ip string) *corev1.Service {
	service.Spec.LoadBalancerIP = ip
	return service
}
