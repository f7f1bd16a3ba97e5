package systemcomponents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// Without its pods, a webhook makes requests fail: while it cannot be deleted, the pods stay.
func TestDestroyStopsAtAnError(t *testing.T) {
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "d"}}
	broken := errors.New("connection refused")
	c := fake.NewClientBuilder().WithObjects(webhook, deployment).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if object.GetName() == "w" {
				return broken
			}
			return c.Delete(ctx, object, options...)
		},
	}).Build()
	in := &Inputs{API: c}
	if err := in.destroy(t.Context(), deployment, webhook); !errors.Is(err, broken) {
		t.Errorf("destroy() = %v, want %v", err, broken)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Errorf("the Deployment was deleted before the webhook: %v", err)
	}
}

// While the API server has a CA with which it does not trust the new pods of gardener-resource-manager, it refuses the other components.
func TestExistingWebhooksAreUpdatedFirst(t *testing.T) {
	for name, existing := range map[string]bool{"a new cluster": false, "a CA that has expired": true} {
		t.Run(name, func(t *testing.T) {
			key := client.ObjectKey{Name: resourcemanager.Name}
			in := (&Inputs{API: stagetest.New(t).Seed, FieldManager: "any"}).forDeletion()
			if existing {
				if err := in.API.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}); err != nil {
					t.Fatal(err)
				}
			}
			in.ResourceManager = func() (resourcemanager.Values, error) {
				return resourcemanager.Values{Namespace: "garden", Config: resourcemanager.ForSeed(), ServerSecret: "any", CABundle: []byte("new")}, nil
			}
			if err := in.updateMutatingWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			config := &admissionregistrationv1.MutatingWebhookConfiguration{}
			err := in.API.Get(t.Context(), key, config)
			switch {
			case !existing && !apierrors.IsNotFound(err):
				t.Errorf("a new cluster has webhooks before its components (%v)", err)
			case existing && (err != nil || len(config.Webhooks) == 0 || string(config.Webhooks[0].ClientConfig.CABundle) != "new"):
				t.Errorf("the webhooks do not have the new CA: %+v (%v)", config.Webhooks, err)
			}
		})
	}
}

// A cluster may enforce a pod security level by default, which system components need not keep.
func TestNamespaceIsPrivileged(t *testing.T) {
	in := &Inputs{API: fake.NewFakeClient(), FieldManager: "any"}
	if err := in.createNamespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{}
	if err := in.API.Get(t.Context(), client.ObjectKey{Name: "garden"}, namespace); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"gardener.cloud/role": "garden", "pod-security.kubernetes.io/enforce": "privileged"}
	if diff := cmp.Diff(want, namespace.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestComponents compares Components with what the flow deploys: every Deployment and every load balancer is in it.
func TestComponents(t *testing.T) {
	for name, scaled := range map[string]bool{"plain": false, "autoscaled": true} {
		t.Run(name, func(t *testing.T) {
			in := (&Inputs{}).forDeletion()
			if scaled {
				in.Autoscaler = &corev1beta1.VerticalPodAutoscaler{}
			}
			_, deployed, err := in.resourceManagerObjects()
			if err != nil {
				t.Fatal(err)
			}
			druid, err := in.etcdDruidObjects()
			if err != nil {
				t.Fatal(err)
			}
			deployed = slices.Concat(deployed, druid, gateway.Objects(in.gatewayValues()))
			if scaled {
				vpa, err := in.vpaObjects()
				if err != nil {
					t.Fatal(err)
				}
				deployed = append(deployed, vpa...)
			}
			want, got := map[string]bool{}, map[string]bool{}
			for _, object := range deployed {
				service, ok := object.(*corev1.Service)
				if _, deployment := object.(*appsv1.Deployment); deployment || ok && service.Spec.Type == corev1.ServiceTypeLoadBalancer {
					want[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
				}
			}
			for _, object := range Components(scaled) {
				got[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Components() (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a gateway that ends connections, no webhook is called for pods of control planes.
func TestLoadBalancingWebhook(t *testing.T) {
	for _, terminates := range []bool{false, true} {
		in := (&Inputs{TerminateTLS: terminates}).forDeletion()
		webhooks, _, err := in.resourceManagerObjects()
		if err != nil {
			t.Fatal(err)
		}
		called := slices.ContainsFunc(webhooks, func(object client.Object) bool {
			c, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration)
			return ok && slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
				return w.Name == "pod-kube-apiserver-load-balancing.resources.gardener.cloud"
			})
		})
		if called != terminates {
			t.Errorf("with TerminateTLS %t, the webhook is called: %t", terminates, called)
		}
	}
}

// TestLoadBalancerSettings deploys the gateway with all settings for load balancers, without and with an existing Service.
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
				if err := clusters.Seed.Create(t.Context(), tc.existing); err != nil {
					t.Fatal(err)
				}
			}
			in := &Inputs{API: clusters.Seed, FieldManager: "any", LoadBalancer: LoadBalancer{
				Annotations: map[string]string{"a": "b"}, Class: new("fast"), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, ProxyProtocol: true,
			}}
			if err := in.deployGateway(t.Context()); err != nil {
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
			if !in.gatewayValues().ProxyProtocol {
				t.Error("the gateway does not accept the PROXY protocol")
			}
		})
	}
}
