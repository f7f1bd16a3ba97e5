package providerlocal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/cloudcontroller"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// A Service of a shoot gets the address of one beside its machines, which forwards to its node ports, and is deleted with it.
func TestLoadBalancers(t *testing.T) {
	e := env.Start(t, env.Lenient())
	elsewhere := e.AddCluster(t)
	connect := func(config *rest.Config) client.WithWatch {
		c, err := client.NewWithWatch(config, client.Options{Scheme: e.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	shoot, machines := connect(e.Config), connect(elsewhere)
	create(t, machines, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra-shoot--dev--lb"}})
	options := &cloudcontroller.Options{
		Namespace: "shoot--dev--lb", Kubeconfig: env.KubeconfigFile(t, e.Config), Port: ports.Free(t, 1)[0],
		Infrastructure: process.OtherCluster{Kubeconfig: env.KubeconfigFile(t, elsewhere), Blocked: func(string) string { return "" }},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- cloudcontroller.Run(ctx, options, logr.Discard()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, LoadBalancerSourceRanges: []string{"10.0.0.0/8"},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	create(t, shoot, web)
	var balancer *corev1.Service
	env.AwaitList(t, machines, func(services []*corev1.Service) error {
		if len(services) != 1 {
			return fmt.Errorf("there are %d Services beside the machines", len(services))
		}
		balancer = services[0]
		return nil
	}, client.InNamespace("infra-shoot--dev--lb"))
	port := balancer.Spec.Ports[0]
	if balancer.Spec.Type != corev1.ServiceTypeLoadBalancer || balancer.Spec.Selector["app"] != "machine" || port.Port != 80 || port.TargetPort.IntVal != web.Spec.Ports[0].NodePort ||
		len(balancer.Spec.LoadBalancerSourceRanges) != 1 || balancer.Labels[cloudcontroller.ServiceLabel] != "default.web" {
		t.Errorf("the Service beside the machines is %+v", balancer)
	}
	env.EditStatus(t, machines, balancer, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
	})
	env.Await(t, shoot, web, func(s *corev1.Service) error {
		if ingress := s.Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].IP != "192.0.2.7" {
			return fmt.Errorf("addresses are %v", ingress)
		}
		return nil
	})

	// What the infrastructure cannot do is said by an event.
	local := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "local"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	create(t, shoot, local)
	env.AwaitList(t, shoot, func(events []*corev1.Event) error {
		for _, event := range events {
			if event.InvolvedObject.Name == "local" && event.Reason == "SyncLoadBalancerFailed" {
				return nil
			}
		}
		return errors.New("there is no event of a failure")
	}, client.InNamespace("default"))

	for _, service := range []*corev1.Service{web, local} {
		if err := shoot.Delete(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		env.AwaitGone(t, shoot, service)
	}
	env.AwaitGone(t, machines, balancer)
}
