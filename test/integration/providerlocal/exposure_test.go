package providerlocal

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/test/env"
)

// A SelfHostedShootExposure is a load balancer beside the machines. It is ready when that has an address, and leaves nothing.
func TestExposure(t *testing.T) {
	e, c := cluster(t, crds.Extensions, crds.Machine, crds.Resources, crds.VerticalPodAutoscaler)
	readyInfrastructure(t, e, c)
	playCluster(t, c)
	machine := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: machinesNamespace, Name: "machine-a", Labels: localv1alpha1.MachineLabels()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "machine", Image: "registry.example.com/machine"}}},
	}
	if err := c.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	env.EditStatus(t, c, machine, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.1.0.7", []corev1.PodIP{{IP: "10.1.0.7"}}
	})
	exists := func(t *testing.T, o extensionsv1alpha1.Object) {
		key := client.ObjectKey{Namespace: machinesNamespace, Name: "exposure-" + o.GetName()}
		service, slice, policy := &corev1.Service{}, &discoveryv1.EndpointSlice{}, &networkingv1.NetworkPolicy{}
		for _, object := range []client.Object{service, slice, policy} {
			if err := c.Get(t.Context(), key, object); err != nil {
				t.Fatal(err)
			}
		}
		if len(service.Spec.Selector) > 0 || service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].NodePort != 0 {
			t.Errorf("the Service is %+v", service.Spec)
		}
		if len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != "10.1.0.7" || slice.Labels[discoveryv1.LabelServiceName] != key.Name {
			t.Errorf("the EndpointSlice is %+v", slice)
		}
	}
	number := 0
	contract.Run(t, contract.Suite{
		Client: c,
		New: func() extensionsv1alpha1.Object {
			number++
			return &extensionsv1alpha1.SelfHostedShootExposure{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("crazy-%d", number)},
				Spec: extensionsv1alpha1.SelfHostedShootExposureSpec{
					DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Port: 443,
					Endpoints: []extensionsv1alpha1.ControlPlaneEndpoint{{
						NodeName: "machine-a", Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.7"}},
					}},
				},
			}
		},
		Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.SelfHostedShootExposure).Spec.Type = "aws" },
		Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
			if ingress := o.(*extensionsv1alpha1.SelfHostedShootExposure).Status.Ingress; len(ingress) != 1 || ingress[0].IP != "192.0.2.7" {
				t.Errorf("status.ingress is %v", ingress)
			}
			exists(t, o)
		},
		Kept: exists,
		Gone: func(t *testing.T, o extensionsv1alpha1.Object) {
			env.AwaitList(t, c, env.None[*corev1.Service], client.InNamespace(machinesNamespace), client.MatchingLabels{"app": "exposure"})
			env.AwaitList(t, c, env.None[*networkingv1.NetworkPolicy], client.InNamespace(machinesNamespace), client.MatchingLabels{"app": "exposure"})
			env.AwaitGone(t, c, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: machinesNamespace, Name: "exposure-" + o.GetName()}})
		},
	})
}
