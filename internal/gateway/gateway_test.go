package gateway

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/exposure"
	deployed "gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/gateway/haproxy"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
)

// cluster is an API server with the gateway of a seed, and the directory of its HAProxy.
type cluster struct {
	client.WithWatch
	dir string
}

func start(t *testing.T) *cluster {
	t.Helper()
	e := env.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	env.AwaitServed[*gatewayv1.Gateway](t, c)
	env.AwaitServed[*gatewayv1.GatewayClass](t, c)
	env.AwaitServed[*gatewayv1.TLSRoute](t, c)
	if err := kube.Apply(t.Context(), c, "test", deployed.Objects(deployed.Values{ControllerImage: "i", ProxyImage: "i", Replicas: 1})...); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(e.Config, manager.Options{
		Scheme: scheme, Logger: process.NewLogger(t.Output(), "debug", "text"), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // a test may run more than once
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key := client.ObjectKey{Namespace: deployed.Namespace, Name: deployed.Name}
	if err := Add(mgr, prometheus.NewRegistry(), haproxy.NewProgrammer(dir, clock.RealClock{}), key, key, true); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &cluster{c, dir}
}

// timeout is for steps that take much less than a second on an idle machine.
const timeout = time.Minute

func (c *cluster) awaitRoute(t *testing.T, namespace, name string, want metav1.ConditionStatus, reason string) {
	t.Helper()
	env.Await(t, c, env.Named[*gatewayv1.TLSRoute](namespace, name), func(r *gatewayv1.TLSRoute) error {
		if len(r.Status.Parents) != 1 {
			return fmt.Errorf("parents are %+v", r.Status.Parents)
		}
		accepted := meta.FindStatusCondition(r.Status.Parents[0].Conditions, string(gatewayv1.RouteConditionAccepted))
		if accepted == nil || accepted.Status != want || accepted.Reason != reason || accepted.ObservedGeneration != r.Generation {
			return fmt.Errorf("conditions are %+v", r.Status.Parents[0].Conditions)
		}
		return nil
	})
}

// awaitMap waits until the file of HAProxy's map has a content.
func (c *cluster) awaitMap(t *testing.T, want string) {
	t.Helper()
	var got []byte
	end := time.After(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		if got, err = os.ReadFile(filepath.Join(c.dir, haproxy.ExactFile)); err == nil && string(got) == want {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("the map is %q, not %q", got, want)
		}
	}
}

func (c *cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// keys are the data of valid credentials, all with the same certificate.
func keys(t *testing.T) map[string][]byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return map[string][]byte{
		deployed.KeyCertificate: certificate, deployed.KeyPrivateKey: key, deployed.KeyProxyCertificate: certificate, deployed.KeyProxyPrivateKey: key,
		deployed.KeyClientCA: certificate, deployed.KeyServerCA: certificate,
	}
}

func TestRoutesBecomeMaps(t *testing.T) {
	c := start(t)
	const namespace = "shoot--dev--first"
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c.create(t, exposure.Objects(exposure.ForAPIServer(namespace, "api.first.example.com"))...)
	c.awaitRoute(t, namespace, "kube-apiserver", metav1.ConditionTrue, "Accepted")
	c.awaitMap(t, "api.first.example.com -\n")

	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver-1", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-apiserver"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}
	c.create(t, service, slice)
	slice.Endpoints[0].Conditions.Ready = new(true)
	if err := c.Update(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	c.awaitMap(t, "api.first.example.com "+service.Spec.ClusterIP+"/443\n")

	// Its connections end at the gateway while that has credentials that are valid.
	credentials := deployed.Credentials{
		Namespace: deployed.Namespace, Route: client.ObjectKey{Namespace: namespace, Name: "kube-apiserver"}, RouteNamespaceUID: "uid", Data: keys(t),
	}.Secret()
	valid := credentials.Data[deployed.KeyServerCA]
	credentials.Data[deployed.KeyServerCA] = []byte("no certificate")
	c.create(t, credentials)
	credentials.Data[deployed.KeyServerCA] = valid
	if err := c.Update(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	c.awaitMap(t, "api.first.example.com 127.0.0.1/8444/"+service.Spec.ClusterIP+"\n")
	if err := c.Delete(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	c.awaitMap(t, "api.first.example.com "+service.Spec.ClusterIP+"/443\n")

	// Another shoot uses the same name.
	const other = "shoot--dev--second"
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})
	second := exposure.Objects(exposure.Values{Namespace: other, Name: "second", Hosts: []string{"api.first.example.com"}, Service: "kube-apiserver", Port: 443})
	c.create(t, second...)
	c.awaitRoute(t, other, "second", metav1.ConditionFalse, "HostnameConflict")

	front := &corev1.Service{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: deployed.Namespace, Name: deployed.Name}, front); err != nil {
		t.Fatal(err)
	}
	front.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	if err := c.Status().Update(t.Context(), front); err != nil {
		t.Fatal(err)
	}
	env.Await(t, c, env.Named[*gatewayv1.Gateway](deployed.Namespace, deployed.Name), func(g *gatewayv1.Gateway) error {
		if !meta.IsStatusConditionTrue(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)) ||
			len(g.Status.Addresses) != 1 || g.Status.Addresses[0].Value != "192.0.2.9" || g.Status.Listeners[0].AttachedRoutes != 1 {
			return fmt.Errorf("status is %+v", g.Status)
		}
		return nil
	})

	// When the first is deleted, the second gets the name, and has no backend.
	if err := c.DeleteAllOf(t.Context(), &gatewayv1.TLSRoute{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	c.awaitRoute(t, other, "second", metav1.ConditionTrue, "Accepted")
	c.awaitMap(t, "api.first.example.com -\n")
}
