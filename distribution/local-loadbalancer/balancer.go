package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudprovider "k8s.io/cloud-provider"
)

// balancer is a cloud provider with load balancers only, which are addresses of a pool. Assigned addresses are in the
// status of Services; the reservations bridge the time until the status is in the cache.
type balancer struct {
	pool     netip.Prefix
	services func() ([]*corev1.Service, error)

	mu       sync.Mutex
	reserved map[types.NamespacedName]netip.Addr
}

var (
	_ cloudprovider.Interface    = &balancer{}
	_ cloudprovider.LoadBalancer = &balancer{}
)

func newBalancer(pool netip.Prefix, services func() ([]*corev1.Service, error)) *balancer {
	return &balancer{pool: pool.Masked(), services: services, reserved: map[types.NamespacedName]netip.Addr{}}
}

// GetLoadBalancer returns the address that the Service has, if any.
func (b *balancer) GetLoadBalancer(_ context.Context, _ string, service *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	addr, ok := b.current(service)
	if !ok {
		return nil, false, nil
	}
	return status(addr), true, nil
}

// GetLoadBalancerName returns a name that is only displayed.
func (b *balancer) GetLoadBalancerName(_ context.Context, _ string, service *corev1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

// EnsureLoadBalancer returns the Service's address: that of spec.loadBalancerIP, else the current one, else the lowest free one.
func (b *balancer) EnsureLoadBalancer(_ context.Context, _ string, service *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, err := b.taken(service)
	if err != nil {
		return nil, err
	}
	addr, err := b.choose(service, taken)
	if err != nil {
		return nil, err
	}
	b.reserved[key(service)] = addr
	return status(addr), nil
}

// UpdateLoadBalancer has nothing to do: any node serves all Services.
func (b *balancer) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

// EnsureLoadBalancerDeleted releases the Service's address.
func (b *balancer) EnsureLoadBalancerDeleted(_ context.Context, _ string, service *corev1.Service) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reserved, key(service))
	return nil
}

func (b *balancer) choose(service *corev1.Service, taken map[netip.Addr]types.NamespacedName) (netip.Addr, error) {
	if wanted := service.Spec.LoadBalancerIP; wanted != "" {
		addr, err := netip.ParseAddr(wanted)
		if err != nil || !b.pool.Contains(addr) {
			return netip.Addr{}, fmt.Errorf("spec.loadBalancerIP: %q is not in the pool %s", wanted, b.pool)
		}
		if owner, ok := taken[addr]; ok {
			return netip.Addr{}, fmt.Errorf("spec.loadBalancerIP: %s is used by Service %s", wanted, owner)
		}
		return addr, nil
	}
	if addr, ok := b.current(service); ok {
		if _, lost := taken[addr]; !lost && b.pool.Contains(addr) {
			return addr, nil
		}
	}
	for addr := b.pool.Addr(); b.pool.Contains(addr); addr = addr.Next() {
		if _, ok := taken[addr]; !ok {
			return addr, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all %d addresses of the pool %s are in use; delete a LoadBalancer Service", len(taken), b.pool)
}

// taken are the addresses of all other Services.
func (b *balancer) taken(service *corev1.Service) (map[netip.Addr]types.NamespacedName, error) {
	services, err := b.services()
	if err != nil {
		return nil, err
	}
	taken := map[netip.Addr]types.NamespacedName{}
	for _, other := range services {
		// A Service that is no longer a load balancer keeps its address until its status is cleared.
		if addr, ok := statusAddress(other); ok && key(other) != key(service) {
			taken[addr] = key(other)
		}
	}
	for other, addr := range b.reserved {
		if other != key(service) {
			taken[addr] = other
		}
	}
	return taken, nil
}

func (b *balancer) current(service *corev1.Service) (netip.Addr, bool) {
	if addr, ok := b.reserved[key(service)]; ok {
		return addr, true
	}
	return statusAddress(service)
}

func statusAddress(service *corev1.Service) (netip.Addr, bool) {
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(ingress.IP); err == nil {
			return addr, true
		}
	}
	return netip.Addr{}, false
}

func status(addr netip.Addr) *corev1.LoadBalancerStatus {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: addr.String()}}}
}

func key(service *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
}

// The rest of cloudprovider.Interface, which a local cluster does not need.

func (b *balancer) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

func (b *balancer) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return b, true }

func (b *balancer) Instances() (cloudprovider.Instances, bool) { return nil, false }

func (b *balancer) InstancesV2() (cloudprovider.InstancesV2, bool) { return nil, false }

func (b *balancer) Zones() (cloudprovider.Zones, bool) { return nil, false }

func (b *balancer) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

func (b *balancer) Routes() (cloudprovider.Routes, bool) { return nil, false }

func (b *balancer) ProviderName() string { return "local" }

func (b *balancer) HasClusterID() bool { return true }
