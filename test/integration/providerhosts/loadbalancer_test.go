package providerhosts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/announcer"
	"gardener.cloud/gardener/internal/cloudcontroller/claim"
	"gardener.cloud/gardener/internal/provider/hosts"
	"gardener.cloud/gardener/pkg/managedresource"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// deployed creates what a ControlPlane has in one of its ManagedResources, as gardener-resource-manager does.
func deployed(t *testing.T, c client.WithWatch, in, resource string) {
	t.Helper()
	managed := env.Await(t, c, env.Named[*resourcesv1alpha1.ManagedResource](in, resource), func(*resourcesv1alpha1.ManagedResource) error { return nil })
	for _, ref := range managed.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: in, Name: ref.Name}, secret); err != nil {
			t.Fatal(err)
		}
		objects, err := managedresource.Unpack(secret)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { // namespaces first
			return strings.Compare(fmt.Sprint(a.GetKind() != "Namespace"), fmt.Sprint(b.GetKind() != "Namespace"))
		})
		for _, object := range objects {
			create(t, c, object)
		}
	}
}

// runAs runs a manager as a ServiceAccount, so that what its roles lack shows, until the returned function is called.
func runAs(t *testing.T, config *rest.Config, namespace, account string, options manager.Options, add func(manager.Manager, *rest.Config) error) (stop func()) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	scheme, err := hosts.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	options.Scheme, options.Metrics, options.Logger = scheme, metricsserver.Options{BindAddress: "0"}, logr.Discard()
	mgr, err := manager.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := add(mgr, config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// played is the network of a node.
type played struct {
	mutex sync.Mutex
	has   map[netip.Addr]bool
}

func (p *played) set(address netip.Addr, has bool) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.has == nil {
		p.has = map[netip.Addr]bool{}
	}
	p.has[address] = has
	return nil
}

func (p *played) Hold(address netip.Addr) error { return p.set(address, true) }
func (p *played) Drop(address netip.Addr) error { return p.set(address, false) }

func (p *played) holds(address string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.has[netip.MustParseAddr(address)]
}

func testLoadBalancers(t *testing.T, c client.WithWatch, config *rest.Config) {
	step := env.Story(t)
	raw := func(object any) runtime.RawExtension {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: content}
	}
	const one, other = "shoot--dev--one", "shoot--dev--other"
	shoot := builder.Shoot("one", builder.Workers(1))
	create(t, c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "cloudprovider"}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: one}, Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: raw(builder.CloudProfile("hosts")), Seed: new(raw(builder.Seed("hosts"))), Shoot: raw(shoot),
		}},
		&extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "one"}, Spec: extensionsv1alpha1.ControlPlaneSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "hosts"}, Region: "r", SecretRef: corev1.SecretReference{Namespace: one, Name: "cloudprovider"},
		}},
	)
	deployed(t, c, one, "extension-controlplane-seed")
	deployed(t, c, one, "extension-controlplane-shoot")
	// The shoot and the seed are one cluster here, and the accounts of both have the same permissions in it.
	runAs(t, config, one, "cloud-controller-manager", manager.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{one: {}}}},
		func(mgr manager.Manager, own *rest.Config) error {
			inShoot := rest.CopyConfig(own)
			inShoot.Impersonate.UserName = "system:serviceaccount:kube-system:cloud-controller-manager"
			target, err := cluster.New(inShoot, func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
			if err != nil {
				return err
			}
			if err := mgr.Add(target); err != nil {
				return err
			}
			return claim.Add(mgr, target, one)
		})
	service := func(name string, edit ...func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		for _, e := range edit {
			e(s)
		}
		return s
	}
	await := func(name, address string) {
		t.Helper()
		env.Await(t, c, env.Named[*corev1.Service]("default", name), func(s *corev1.Service) error {
			got := s.Status.LoadBalancer.Ingress
			if address == "" && len(got) == 0 {
				return nil
			}
			if len(got) != 1 || got[0].IP != address || ptr.Deref(got[0].IPMode, "") != corev1.LoadBalancerIPModeVIP {
				return fmt.Errorf("its addresses are %v, want %q", got, address)
			}
			return nil
		})
	}

	step("a pool that is not valid says why")
	pool := &hostsv1alpha1.AddressPool{ObjectMeta: metav1.ObjectMeta{Name: "rack"}, Spec: hostsv1alpha1.AddressPoolSpec{Addresses: []string{"192.0.2.10-192.0.2.11", "192.0.2.11"}}}
	create(t, c, pool)
	env.Await(t, c, pool, func(p *hostsv1alpha1.AddressPool) error {
		if len(p.Status.Conditions) != 1 || !strings.Contains(p.Status.Conditions[0].Message, "spec.addresses[1]") {
			return fmt.Errorf("its conditions are %v", p.Status.Conditions)
		}
		return nil
	})

	step("a Service has an address when there is one")
	create(t, c, service("first"))
	env.AwaitList(t, c, func(all []*eventsv1.Event) error {
		if !slices.ContainsFunc(all, func(e *eventsv1.Event) bool { return e.Reason == "NoAddressLeft" && e.Regarding.Name == "first" }) {
			return fmt.Errorf("%d events", len(all))
		}
		return nil
	}, client.InNamespace("default"))
	env.Edit(t, c, pool, func(p *hostsv1alpha1.AddressPool) { p.Spec.Addresses = []string{"192.0.2.10-192.0.2.11"} })
	await("first", "192.0.2.10")

	step("another shoot gets another address")
	stranger := &hostsv1alpha1.AddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "a"}, Spec: hostsv1alpha1.AddressClaimSpec{Service: "default/web", Family: corev1.IPv4Protocol}}
	create(t, c, stranger)
	env.Await(t, c, stranger, func(a *hostsv1alpha1.AddressClaim) error {
		if a.Status.Address != "192.0.2.11" {
			return fmt.Errorf("its status is %+v", a.Status)
		}
		return nil
	})

	step("a Service with a class is left alone")
	create(t, c, service("classy", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/other") }))

	step("a Service waits until an address is free, and has the one that it asks for")
	create(t, c, service("second", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "192.0.2.11" }))
	env.Await(t, c, env.Named[*corev1.Service]("default", "second"), func(s *corev1.Service) error {
		if !slices.Contains(s.Finalizers, "service.kubernetes.io/load-balancer-cleanup") {
			return fmt.Errorf("its finalizers are %v", s.Finalizers)
		}
		return nil
	})
	if err := c.Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	await("second", "192.0.2.11")

	step("a Service that is no load balancer any more has no address, and its address is free")
	env.Edit(t, c, env.Named[*corev1.Service]("default", "second"), func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerIP = corev1.ServiceTypeClusterIP, "" })
	await("second", "")
	env.Await(t, c, pool, func(p *hostsv1alpha1.AddressPool) error {
		if len(p.Status.Assigned) != 1 || p.Status.Assigned[0].Namespace != one {
			return fmt.Errorf("it has assigned %v", p.Status.Assigned)
		}
		return nil
	})

	step("one node answers for the address")
	networks := map[string]*played{"node-1": {}, "node-2": {}}
	stops := map[string]func(){}
	for name, network := range networks {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		create(t, c, node)
		env.EditStatus(t, c, node, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
		stops[name] = runAs(t, config, "kube-system", "address-announcer", manager.Options{Cache: cache.Options{ByObject: announcer.CachedObjects()}},
			func(mgr manager.Manager, _ *rest.Config) error {
				return (&announcer.Announcer{Client: mgr.GetClient(), Network: network, Clock: clock.RealClock{}, Node: name}).Add(mgr, "announcer-"+name)
			})
	}
	holder := func(not string) (name string) {
		t.Helper()
		env.Await(t, c, env.Named[*coordinationv1.Lease](hostsv1alpha1.LeaseNamespace, "192.0.2.10"), func(l *coordinationv1.Lease) error {
			name = ptr.Deref(l.Spec.HolderIdentity, "")
			if name == "" || name == not || !networks[name].holds("192.0.2.10") { // the renewal of the Lease brings it back
				return fmt.Errorf("its holder is %q", name)
			}
			return nil
		})
		return name
	}
	first := holder("")

	step("another node takes it when the node is not ready")
	env.EditStatus(t, c, env.Named[*corev1.Node]("", first), func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	second := holder(first)
	if networks[first].holds("192.0.2.10") {
		t.Errorf("%s and %s answer for the address", first, second)
	}

	step("a process that ends leaves it to the other node")
	env.EditStatus(t, c, env.Named[*corev1.Node]("", first), func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue })
	stops[second]()
	if third := holder(second); networks[second].holds("192.0.2.10") {
		t.Errorf("%s and %s answer for the address", second, third)
	}

	step("a node that is dead loses it")
	env.Edit(t, c, env.Named[*coordinationv1.Lease](hostsv1alpha1.LeaseNamespace, "192.0.2.10"), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("dead") })
	if got := holder("dead"); got != first {
		t.Errorf("%s answers for the address, want %s", got, first)
	}

	step("the address is free when the Service is deleted")
	if err := c.Delete(t.Context(), env.Named[*corev1.Service]("default", "first")); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c, env.Named[*corev1.Service]("default", "first"))
	env.Await(t, c, env.Named[*coordinationv1.Lease](hostsv1alpha1.LeaseNamespace, "192.0.2.10"), func(l *coordinationv1.Lease) error {
		if ptr.Deref(l.Spec.HolderIdentity, "") != "" {
			return fmt.Errorf("its holder is %q", *l.Spec.HolderIdentity)
		}
		return nil
	})
	if networks[first].holds("192.0.2.10") {
		t.Errorf("%s answers for the address of no Service", first)
	}
	env.Await(t, c, pool, func(p *hostsv1alpha1.AddressPool) error {
		if len(p.Status.Assigned) != 0 {
			return fmt.Errorf("it has assigned %v", p.Status.Assigned)
		}
		return nil
	})
	classy := &corev1.Service{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "classy"}, classy); err != nil || len(classy.Finalizers)+len(classy.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("the Service with a class has finalizers %v, addresses %v (%v)", classy.Finalizers, classy.Status.LoadBalancer.Ingress, err)
	}
}
