package announcer

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

const (
	// workers and writeTimeout have addresses be renewed in time, also if no request to the API server is answered.
	workers      = 10
	writeTimeout = 2 * time.Second
	// unablePeriod is how long a node that could not take an address does not try again.
	unablePeriod = time.Minute
	// serviceAnnotation is on Leases: the namespace and the name of the Service.
	serviceAnnotation = "hosts.provider.extensions.gardener.cloud/service"
)

// Network has addresses.
type Network interface {
	// Hold has the node answer for an address, and tells the others in the network.
	Hold(address netip.Addr) error
	// Drop ends that.
	Drop(address netip.Addr) error
}

// Announcer has a node answer for addresses of Services. Of the cluster, it reads Services, Nodes, EndpointSlices and Leases, and writes Leases.
type Announcer struct {
	Client  client.Client
	Network Network
	Clock   clock.PassiveClock
	// Node is the name of the node that it runs on.
	Node string

	mutex  sync.Mutex
	held   map[client.ObjectKey]netip.Addr // by Service
	seen   map[string]observation          // by the name of the Lease
	unable map[netip.Addr]time.Time        // until when
	closed bool
}

// observation is a state of a Lease and when it was first seen.
type observation struct {
	holder  string
	renewed time.Time
	at      time.Time
}

// Add adds the controller to a manager of the cluster, whose cache has what CachedObjects says.
func (r *Announcer) Add(mgr manager.Manager, name string) error {
	r.held, r.seen, r.unable = map[client.ObjectKey]netip.Addr{}, map[string]observation{}, map[netip.Addr]time.Time{}
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers, NeedLeaderElection: new(false),
	})
	if err != nil {
		return err
	}
	informers := mgr.GetCache()
	return errors.Join(
		c.Watch(source.Kind(informers, &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{})),
		c.Watch(source.Kind(informers, &coordinationv1.Lease{}, handler.TypedEnqueueRequestsFromMapFunc(serviceOfLease))),
		c.Watch(source.Kind(informers, &discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(serviceOfEndpoints))),
		c.Watch(source.Kind(informers, &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(r.allServices), predicate.TypedFuncs[*corev1.Node]{
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool { return usable(e.ObjectOld) != usable(e.ObjectNew) },
		})),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			return r.close(context.WithoutCancel(ctx))
		})),
	)
}

func serviceOfLease(_ context.Context, lease *coordinationv1.Lease) []reconcile.Request {
	namespace, name, ok := strings.Cut(lease.Annotations[serviceAnnotation], "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

func serviceOfEndpoints(_ context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}}}
}

func (r *Announcer) allServices(ctx context.Context, _ *corev1.Node) []reconcile.Request {
	services := &corev1.ServiceList{}
	if err := r.Client.List(ctx, services); err != nil { // from the cache
		logf.FromContext(ctx).Error(err, "Cannot list Services")
	}
	var requests []reconcile.Request
	for i := range services.Items {
		if addressOf(&services.Items[i]).IsValid() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&services.Items[i])})
		}
	}
	return requests
}

// addressOf returns the address of a load balancer that nodes answer for, if there is one.
func addressOf(s *corev1.Service) netip.Addr {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.Spec.LoadBalancerClass != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(s.Status.LoadBalancer.Ingress[0].IP)
	return address
}

// leaseName returns the name of the Lease of an address. The short form of an IPv6 address may end in colons.
func leaseName(address netip.Addr) string {
	return strings.ReplaceAll(address.StringExpanded(), ":", "-")
}

// Reconcile has the node answer for the address of a Service, or not. It returns no error of the API server: the time between attempts grows with errors, and
// an address that is held must be renewed.
func (r *Announcer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	service := &corev1.Service{}
	if err := r.Client.Get(ctx, req.NamespacedName, service); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	address := addressOf(service)
	if old := r.holds(req.NamespacedName); old.IsValid() && old != address {
		r.drop(ctx, req.NamespacedName, old)
	}
	if !address.IsValid() {
		return reconcile.Result{}, nil
	}
	v, err := r.look(ctx, service, address)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := decide(v)
	switch {
	case decision.hold && decision.write:
		return reconcile.Result{RequeueAfter: r.hold(ctx, req.NamespacedName, address, v)}, nil
	case !decision.hold && v.held:
		r.drop(ctx, req.NamespacedName, address)
	case !decision.hold && decision.write: // of a process of this node that has ended
		if !r.write(ctx, req.NamespacedName, address, v.lease, "") {
			decision.again = time.Second
		}
	}
	return reconcile.Result{RequeueAfter: decision.again}, nil
}

// look reads what is known of an address.
func (r *Announcer) look(ctx context.Context, service *corev1.Service, address netip.Addr) (view, error) {
	v := view{node: r.Node, held: r.holds(client.ObjectKeyFromObject(service)) == address}
	nodes, endpoints := &corev1.NodeList{}, &discoveryv1.EndpointSliceList{}
	if err := r.Client.List(ctx, nodes); err != nil {
		return v, err
	}
	if err := r.Client.List(ctx, endpoints, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return v, err
	}
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: hostsv1alpha1.LeaseNamespace, Name: leaseName(address)}, lease)
	if client.IgnoreNotFound(err) != nil {
		return v, err
	}
	if err == nil {
		v.lease = lease
	}
	v.eligible = eligible(service, address.String(), nodes.Items, endpoints.Items)
	now := r.Clock.Now()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	v.unable = max(0, r.unable[address].Sub(now))
	state := observation{holder: ptr.Deref(lease.Spec.HolderIdentity, ""), renewed: ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time, at: now}
	if before, ok := r.seen[leaseName(address)]; ok && before.holder == state.holder && before.renewed.Equal(state.renewed) {
		state.at = before.at
	}
	r.seen[leaseName(address)] = state
	v.quiet = now.Sub(state.at)
	return v, nil
}

// hold takes or renews an address. It returns when to look again.
func (r *Announcer) hold(ctx context.Context, service client.ObjectKey, address netip.Addr, v view) time.Duration {
	log := logf.FromContext(ctx).WithValues("address", address.String())
	if !v.held {
		if !r.write(ctx, service, address, v.lease, r.Node) {
			return renewPeriod // another node was faster, or the API server does not answer
		}
		log.Info("Taking address")
	}
	// That it is held is noted first, so that it is dropped when the process ends.
	if !r.note(service, address) {
		return 0
	}
	if err := r.Network.Hold(address); err != nil {
		log.Error(err, "Cannot hold the address: leaving it to other nodes")
		r.mutex.Lock()
		r.unable[address] = r.Clock.Now().Add(unablePeriod)
		r.mutex.Unlock()
		r.drop(ctx, service, address)
		return unablePeriod
	}
	if !r.note(service, address) { // the process ended meanwhile, and has left the address
		_ = r.Network.Drop(address)
		return 0
	}
	if v.held { // after it is renewed: that needs no API server
		r.write(ctx, service, address, v.lease, r.Node)
	}
	return renewPeriod
}

// drop ends holding an address, and releases its Lease.
func (r *Announcer) drop(ctx context.Context, service client.ObjectKey, address netip.Addr) {
	log := logf.FromContext(ctx).WithValues("address", address.String())
	log.Info("Leaving address")
	if err := r.Network.Drop(address); err != nil {
		log.Error(err, "Cannot remove the address, which ends on its own", "after", addressLifetime.String())
	}
	r.mutex.Lock()
	delete(r.held, service)
	r.mutex.Unlock()
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: hostsv1alpha1.LeaseNamespace, Name: leaseName(address)}, lease)
	if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == r.Node {
		r.write(ctx, service, address, lease, "")
	}
}

// write writes the Lease of an address, and says whether that worked. It fails if the Lease has changed since it was read.
func (r *Announcer) write(ctx context.Context, service client.ObjectKey, address netip.Addr, read *coordinationv1.Lease, holder string) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: hostsv1alpha1.LeaseNamespace, Name: leaseName(address)}}
	if read != nil {
		lease = read.DeepCopy()
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, serviceAnnotation, service.String())
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, new(metav1.NewMicroTime(r.Clock.Now()))
	lease.Spec.LeaseDurationSeconds = new(int32(leaseDuration.Seconds()))
	write := func() error { return r.Client.Update(ctx, lease) }
	if read == nil {
		write = func() error { return r.Client.Create(ctx, lease) }
	}
	err := write()
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		logf.FromContext(ctx).Error(err, "Cannot write the Lease", "address", address.String())
	}
	return err == nil
}

func (r *Announcer) holds(service client.ObjectKey) netip.Addr {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.held[service]
}

// note notes that an address is held, unless the process ends.
func (r *Announcer) note(service client.ObjectKey, address netip.Addr) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.closed {
		r.held[service] = address
	}
	return !r.closed
}

// Held returns the number of addresses that the node answers for.
func (r *Announcer) Held() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.held)
}

// close leaves all addresses to other nodes.
func (r *Announcer) close(ctx context.Context) error {
	r.mutex.Lock()
	r.closed = true
	held := maps.Clone(r.held)
	r.mutex.Unlock()
	var group sync.WaitGroup
	for service, address := range held {
		group.Go(func() { r.drop(ctx, service, address) })
	}
	group.Wait()
	return nil
}
