package providerlocal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// A bastion is a pod beside the machines, with a load balancer. It is ready when both are, and leaves nothing.
func TestBastion(t *testing.T) {
	e, c := cluster(t, crds.Extensions, crds.Machine, crds.Resources, crds.VerticalPodAutoscaler)
	readyInfrastructure(t, e, c)
	playCluster(t, c)
	number := 0
	next := func() *extensionsv1alpha1.Bastion {
		number++
		return &extensionsv1alpha1.Bastion{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("cli-%d", number)},
			Spec: extensionsv1alpha1.BastionSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, UserData: []byte("#!/bin/bash"),
				Ingress: []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.0/24", Except: []string{"203.0.113.0/25"}}}},
			},
		}
	}
	contract.Run(t, contract.Suite{
		Client: c, Immovable: true, // it is deleted before the control plane moves
		New:     func() extensionsv1alpha1.Object { return next() },
		Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Bastion).Spec.Type = "aws" },
		Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
			if ingress := o.(*extensionsv1alpha1.Bastion).Status.Ingress; ingress == nil || ingress.IP != "192.0.2.7" {
				t.Errorf("status.ingress is %v", ingress)
			}
			key := client.ObjectKey{Namespace: machinesNamespace, Name: "bastion-" + o.GetName()}
			pod, service := &corev1.Pod{}, &corev1.Service{}
			for _, object := range []client.Object{pod, service, &corev1.Secret{}, &networkingv1.NetworkPolicy{}} {
				if err := c.Get(t.Context(), key, object); err != nil {
					t.Fatal(err)
				}
			}
			if len(pod.Spec.Volumes) != 2 || pod.Spec.Containers[0].Image != "registry.example/machine:v1" {
				t.Errorf("the pod, which must have no token, is %+v", pod.Spec)
			}
			ranges := service.Spec.LoadBalancerSourceRanges
			if len(ranges) != 2 || ranges[0] != "203.0.113.128/25" || ranges[1] != "::/128" || service.Spec.Ports[0].NodePort != 0 {
				t.Errorf("the Service is %+v", service.Spec)
			}
		},
		Gone: func(t *testing.T, _ extensionsv1alpha1.Object) {
			in := []client.ListOption{client.InNamespace(machinesNamespace), client.MatchingLabels{"app": "bastion"}}
			env.AwaitList(t, c, env.None[*corev1.Pod], in...)
			env.AwaitList(t, c, env.None[*corev1.Service], in...)
			env.AwaitList(t, c, env.None[*corev1.Secret], in...)
			env.AwaitList(t, c, env.None[*networkingv1.NetworkPolicy], in...)
		},
	})
	comesBack(t, c, next())
}

// comesBack loses the pod of a bastion, without a request for the Bastion.
func comesBack(t *testing.T, c client.WithWatch, bastion *extensionsv1alpha1.Bastion) {
	t.Helper()
	bastion.Annotations = map[string]string{constants.GardenerOperation: constants.GardenerOperationReconcile}
	create(t, c, bastion)
	succeeded := func(operation corev1beta1.LastOperationType) {
		t.Helper()
		env.Await(t, c, bastion, func(b *extensionsv1alpha1.Bastion) error {
			if last := b.Status.LastOperation; last == nil || last.Type != operation || last.State != corev1beta1.LastOperationStateSucceeded {
				return fmt.Errorf("last operation is %+v", last)
			}
			return nil
		})
	}
	succeeded(corev1beta1.LastOperationTypeCreate)
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: machinesNamespace, Name: "bastion-" + bastion.Name}, pod); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	succeeded(corev1beta1.LastOperationTypeReconcile)
	env.Await(t, c, env.Named[*corev1.Pod](machinesNamespace, pod.Name), func(current *corev1.Pod) error {
		if current.UID == pod.UID {
			return errors.New("it is the former one")
		}
		return nil
	})
	if err := c.Delete(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c, bastion)
}

// readyInfrastructure runs provider-local, and returns when there is a namespace for the machines of a control plane.
func readyInfrastructure(t *testing.T, e *env.Env, c client.WithWatch) {
	t.Helper()
	profile := builder.CloudProfile("local")
	profile.Spec.MachineImages = []corev1beta1.MachineImage{{Name: "local", Versions: []corev1beta1.MachineImageVersion{
		{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}},
	}}}
	profile.Spec.ProviderConfig = new(raw(t, &localv1alpha1.CloudProfileConfig{MachineImages: []localv1alpha1.MachineImages{{
		Name: "local", Versions: []localv1alpha1.MachineImageVersion{{Version: "1.0.0", Image: "registry.example/machine:v1"}},
	}}}))
	infrastructure := &extensionsv1alpha1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "crazy", Annotations: map[string]string{constants.GardenerOperation: constants.GardenerOperationReconcile},
		},
		Spec: extensionsv1alpha1.InfrastructureSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "local", SecretRef: corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"},
		},
	}
	create(t, c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "extension"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudprovider"}},
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: raw(t, profile), Seed: new(raw(t, builder.Seed("local"))), Shoot: raw(t, builder.Shoot("crazy")),
		}},
		infrastructure,
	)
	// As the ServiceAccount of the chart, so that what its role lacks shows.
	install(t, c, "extension", map[string]any{"seed": map[string]any{"name": "local"}})
	run(t, e, as(e.Config, "extension"), "extension")
	env.Await(t, c, infrastructure, func(i *extensionsv1alpha1.Infrastructure) error {
		if last := i.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
}

// playCluster does what a kubelet and a load balancer do for bastions.
func playCluster(t *testing.T, c client.WithWatch) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{}, 2)
	play := func(list client.ObjectList, started func(client.Object)) {
		changes, err := c.Watch(ctx, list, client.InNamespace(machinesNamespace))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { ended <- struct{}{} }()
			for change := range changes.ResultChan() {
				if object, ok := change.Object.(client.Object); ok && object.GetDeletionTimestamp() == nil {
					started(object)
				}
			}
		}()
		t.Cleanup(changes.Stop)
	}
	t.Cleanup(func() { <-ended; <-ended })
	t.Cleanup(cancel)
	play(&corev1.PodList{}, func(o client.Object) {
		if pod := o.(*corev1.Pod); len(pod.Status.Conditions) == 0 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = c.Status().Update(ctx, pod) // what is not ready shows
		}
	})
	play(&corev1.ServiceList{}, func(o client.Object) {
		if service := o.(*corev1.Service); len(service.Status.LoadBalancer.Ingress) == 0 {
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
			_ = c.Status().Update(ctx, service) // what has no address shows
		}
	})
}
