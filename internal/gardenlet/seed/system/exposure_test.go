package system

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/gateway"
)

// handlersFrom returns the handlers of a configuration, with defaults.
func handlersFrom(handlers ...gardenletconfigv1alpha1.ExposureClassHandler) []gardenletconfigv1alpha1.ExposureClassHandler {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{ExposureClassHandlers: handlers}
	gardenletconfigv1alpha1.DefaultGardenletConfiguration(config)
	return config.ExposureClassHandlers
}

// What a handler has goes before what a zone has, and that before what the Seed has.
func TestFurtherGateways(t *testing.T) {
	seed := &corev1beta1.Seed{}
	seed.Spec.Settings = &corev1beta1.SeedSettings{LoadBalancerServices: &corev1beta1.SeedSettingLoadBalancerServices{
		Annotations: map[string]string{"a": "seed", "b": "seed"}, Class: new("example.com/seed"), ExternalTrafficPolicy: new(corev1.ServiceExternalTrafficPolicyLocal),
	}}
	own := gardenletconfigv1alpha1.ExposureClassHandler{Name: "own", LoadBalancerService: gardenletconfigv1alpha1.LoadBalancerServiceConfig{
		Annotations: map[string]string{"b": "handler"}, Class: new("example.com/handler"),
	}}
	r := &reconciler{Values: Values{Handlers: handlersFrom(gardenletconfigv1alpha1.ExposureClassHandler{Name: "plain"}, own)}}
	type settings struct {
		Handler, Zone, Namespace, Service, Class string
		Annotations                              map[string]string
		Policy                                   corev1.ServiceExternalTrafficPolicy
		Proxy                                    bool
	}
	check := func(want ...settings) {
		t.Helper()
		var got []settings
		for _, v := range r.newRun(seed).furtherGateways() {
			got = append(got, settings{
				v.Handler, v.Zone, v.Namespace, v.ServiceName, *v.LoadBalancerClass, v.ServiceAnnotations, v.ExternalTrafficPolicy, v.ProxyProtocol,
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("gateways (-want +got):\n%s", diff)
		}
	}
	plain := settings{"plain", "", "istio-ingress-handler-plain", "istio-ingressgateway", "example.com/seed", map[string]string{"a": "seed", "b": "seed"}, "Local", false}
	special := settings{"own", "", "istio-ingress-handler-own", "istio-ingressgateway", "example.com/handler", map[string]string{"a": "seed", "b": "handler"}, "Local", false}
	check(plain, special)

	seed.Spec.Provider.Zones = []string{"1", "In_no_namespace", "2"}
	seed.Spec.Settings.LoadBalancerServices.Zones = []corev1beta1.SeedSettingLoadBalancerServicesZones{{
		Name: "2", Annotations: map[string]string{"a": "zone", "b": "zone"}, ExternalTrafficPolicy: new(corev1.ServiceExternalTrafficPolicyCluster),
		ProxyProtocol: &corev1beta1.LoadBalancerServicesProxyProtocol{Allowed: true},
	}}
	in := func(zone string, s settings) settings {
		s.Zone, s.Namespace = zone, s.Namespace+"--zone--"+zone
		if zone == "2" {
			s.Policy, s.Proxy, s.Annotations = "Cluster", true, map[string]string{"a": "zone", "b": "zone"}
		}
		return s
	}
	specialIn2 := in("2", special)
	specialIn2.Annotations["b"] = "handler"
	ofSeed := settings{"", "", "gateway", "gateway", "example.com/seed", map[string]string{"a": "seed", "b": "seed"}, "Local", false}
	check(in("1", ofSeed), in("2", ofSeed), plain, in("1", plain), in("2", plain), special, in("1", special), specialIn2)

	seed.Spec.Settings.LoadBalancerServices.ZonalIngress = &corev1beta1.SeedSettingLoadBalancerServicesZonalIngress{Enabled: new(false)}
	check(plain, special)
}

func TestDeployGateways(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gatewayv1.Install, extensionsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	foreign := &corev1.Namespace{}
	foreign.Name = "kube-system"
	seedAPI := fake.NewClientBuilder().WithScheme(scheme).WithObjects(foreign).Build()
	seed := &corev1beta1.Seed{}
	deploy := func(handlers ...gardenletconfigv1alpha1.ExposureClassHandler) error {
		return (&reconciler{Values: Values{SeedAPI: seedAPI, Handlers: handlersFrom(handlers...)}}).newRun(seed).deployGateways(t.Context())
	}
	exist := func(list client.ObjectList, names func() []string, want ...string) {
		t.Helper()
		if err := seedAPI.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		got := names()
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", list, diff)
		}
	}
	namespaces := func(want ...string) {
		t.Helper()
		list := &corev1.NamespaceList{}
		exist(list, func() (names []string) {
			for _, n := range list.Items {
				names = append(names, n.Name)
			}
			return names
		}, want...)
	}
	services := func(want ...string) {
		t.Helper()
		list := &corev1.ServiceList{}
		exist(list, func() (names []string) {
			for _, s := range list.Items {
				names = append(names, s.Namespace+"/"+s.Name+" "+s.Spec.LoadBalancerIP)
			}
			return names
		}, want...)
	}
	bindings := func(want ...string) {
		t.Helper()
		list := &rbacv1.ClusterRoleBindingList{}
		exist(list, func() (names []string) {
			for _, b := range list.Items {
				names = append(names, b.Name)
			}
			return names
		}, want...)
	}
	handler := func(name string, ingress gardenletconfigv1alpha1.SNIIngress) gardenletconfigv1alpha1.ExposureClassHandler {
		return gardenletconfigv1alpha1.ExposureClassHandler{Name: name, SNI: &gardenletconfigv1alpha1.SNI{Ingress: &ingress}}
	}
	succeed := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	succeed(deploy(handler("a", gardenletconfigv1alpha1.SNIIngress{}), handler("b", gardenletconfigv1alpha1.SNIIngress{ServiceExternalIP: new("192.0.2.1")})))
	namespaces("istio-ingress-handler-a", "istio-ingress-handler-b", "kube-system")
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/istio-ingressgateway 192.0.2.1")

	// A Service with a new name replaces the former one, which stays while a DNSRecord has its address.
	renamed := func(address *string) error {
		return deploy(handler("a", gardenletconfigv1alpha1.SNIIngress{}),
			handler("b", gardenletconfigv1alpha1.SNIIngress{ServiceName: new("other"), ServiceExternalIP: address}))
	}
	former := &corev1.Service{}
	succeed(seedAPI.Get(t.Context(), client.ObjectKey{Namespace: "istio-ingress-handler-b", Name: "istio-ingressgateway"}, former))
	former.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	succeed(seedAPI.Status().Update(t.Context(), former))
	record := &extensionsv1alpha1.DNSRecord{}
	record.Namespace, record.Name, record.Spec.Values = "shoot--dev--b", "b-external", []string{"192.0.2.1"}
	succeed(seedAPI.Create(t.Context(), record))
	succeed(renamed(nil))
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/istio-ingressgateway 192.0.2.1", "istio-ingress-handler-b/other ")
	other := &corev1.Service{}
	succeed(seedAPI.Get(t.Context(), client.ObjectKey{Namespace: "istio-ingress-handler-b", Name: "other"}, other))
	other.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "other.example.com"}}
	succeed(seedAPI.Status().Update(t.Context(), other))
	record.Spec.Values = []string{"other.example.com"} // the provider does not have it yet
	succeed(seedAPI.Update(t.Context(), record))
	succeed(renamed(nil))
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/istio-ingressgateway 192.0.2.1", "istio-ingress-handler-b/other ")
	record.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
	succeed(seedAPI.Update(t.Context(), record))
	succeed(renamed(nil))
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/other ")

	// It does not stay if the new one is to have its address.
	former.ResourceVersion = ""
	succeed(seedAPI.Create(t.Context(), former))
	record.Spec.Values = []string{"192.0.2.1"}
	succeed(seedAPI.Update(t.Context(), record))
	succeed(renamed(new("192.0.2.1")))
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/other 192.0.2.1")

	// The Service for pods of control planes is no former one, also when the gateway does not end connections any more.
	internal := &corev1.Service{}
	internal.Namespace, internal.Name, internal.Labels = "istio-ingress-handler-b", gateway.InternalService, other.Labels
	succeed(seedAPI.Create(t.Context(), internal))
	succeed(renamed(new("192.0.2.1")))
	services("istio-ingress-handler-a/istio-ingressgateway ", "istio-ingress-handler-b/istio-ingressgateway-internal ", "istio-ingress-handler-b/other 192.0.2.1")

	// The gateway of a former handler stays while a route uses it.
	route := exposure.Objects(exposure.Values{
		Namespace: "shoot--dev--a", Service: "kube-apiserver", Gateway: client.ObjectKey{Namespace: "istio-ingress-handler-a", Name: "gateway"},
	})[0]
	succeed(seedAPI.Create(t.Context(), route))
	succeed(deploy(handler("a", gardenletconfigv1alpha1.SNIIngress{Namespace: new("moved")})))
	namespaces("istio-ingress-handler-a", "kube-system", "moved")
	bindings("gardener.cloud:system:gateway:istio-ingress-handler-a", "gardener.cloud:system:gateway:moved")
	succeed(seedAPI.Delete(t.Context(), route))
	succeed(deploy(handler("a", gardenletconfigv1alpha1.SNIIngress{Namespace: new("moved")})))
	namespaces("kube-system", "moved")
	bindings("gardener.cloud:system:gateway:moved")

	// A namespace of something else is not changed, and other handlers are deployed nevertheless.
	err := deploy(handler("a", gardenletconfigv1alpha1.SNIIngress{Namespace: new("kube-system")}), handler("c", gardenletconfigv1alpha1.SNIIngress{}))
	if err == nil || !strings.Contains(err.Error(), `handler "a": Namespace "kube-system" exists, and is not that of this gateway`) {
		t.Errorf("in a foreign namespace: %v", err)
	}
	namespaces("istio-ingress-handler-c", "kube-system")

	// The gateway of a zone that the seed has no more stays while a route uses it. That of the seed is not deleted.
	ofSeed := &corev1.Namespace{}
	ofSeed.Name, ofSeed.Labels = "gateway", map[string]string{"gardener.cloud/role": "istio-ingress"}
	succeed(seedAPI.Create(t.Context(), ofSeed))
	seed.Spec.Provider.Zones = []string{"1", "2"}
	succeed(deploy())
	namespaces("gateway", "gateway--zone--1", "gateway--zone--2", "kube-system")
	route = exposure.Objects(exposure.Values{
		Namespace: "shoot--dev--b", Service: "kube-apiserver", Others: []client.ObjectKey{{Namespace: "gateway--zone--2", Name: "gateway"}},
	})[0]
	succeed(seedAPI.Create(t.Context(), route))
	seed.Spec.Provider.Zones = []string{"1"}
	succeed(deploy())
	namespaces("gateway", "gateway--zone--2", "kube-system")
	bindings("gardener.cloud:system:gateway:gateway--zone--2")

	s := (&reconciler{Values: Values{SeedAPI: seedAPI}}).newRun(seed)
	succeed(s.deleteGateways(t.Context()))
	succeed(seedAPI.Delete(t.Context(), ofSeed))
	namespaces("kube-system")
	bindings()
}
