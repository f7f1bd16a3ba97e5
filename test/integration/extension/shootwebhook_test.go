package extension

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestShootWebhooks registers webhooks in a shoot whose Cluster exists, and in one that comes later, and deletes them when the shoot is no longer selected.
func TestShootWebhooks(t *testing.T) {
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	if err := errors.Join(extensionsv1alpha1.AddToScheme(e.Scheme), apiextensionsv1.AddToScheme(e.Scheme), resourcesv1alpha1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, definitions := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crds.Extensions, crds.Resources} {
		all, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		if err := crds.Deploy(t.Context(), c, "test", all...); err != nil {
			t.Fatal(err)
		}
	}
	s := &seed{c: c}
	clusterOf := func(name, typ string) *extensionsv1alpha1.Cluster {
		object := cluster(func(shoot *corev1beta1.Shoot) { shoot.Spec.Provider.Type = typ })
		object.Name = name
		return object
	}
	shoot := func(name, typ string) {
		t.Helper()
		object := clusterOf(name, typ)
		s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, object)
	}
	const of = "extension-provider-test"
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: of}})
	shoot("shoot--dev--foreign", "other")
	foreign := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--foreign", Name: webhook.ShootManagedResource},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{}},
	}
	if err := kube.Apply(t.Context(), c, "provider-other", foreign); err != nil {
		t.Fatal(err)
	}
	shoot("shoot--dev--early", "example")
	mgr, err := manager.New(e.Config, manager.Options{Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1"
	port := ports.Free(t, 1)[0]
	allowed := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
	})
	if err := webhook.Add(mgr, webhook.Options{
		Name: "provider-test", Namespace: of, BindAddress: address, Port: port, URL: fmt.Sprintf("%s:%d", address, port),
		Shoots: &webhook.Shoots{
			Selects:  webhook.ProviderType("example"),
			Webhooks: []webhook.Webhook{{Name: "nodes", Handler: allowed}, {Name: "pods", Handler: allowed, Validating: true}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	run := func(namespace string) {
		t.Run(namespace, func(t *testing.T) {
			contract.RunShootWebhook(t, contract.ShootWebhookSuite{
				Client: c, Extension: "provider-test", Namespace: namespace, ManagedResource: webhook.ShootManagedResource,
				Deselect: func(t *testing.T) {
					env.Edit(t, c, env.Named[*extensionsv1alpha1.Cluster]("", namespace), func(o *extensionsv1alpha1.Cluster) {
						o.Spec = clusterOf(namespace, "other").Spec
					})
				},
			})
		})
	}
	run("shoot--dev--early")
	shoot("shoot--dev--late", "example")
	run("shoot--dev--late")
	others := &resourcesv1alpha1.ManagedResourceList{}
	if err := c.List(t.Context(), others, client.InNamespace(foreign.Namespace)); err != nil || len(others.Items) != 1 || len(others.Items[0].Spec.SecretRefs) > 0 {
		t.Errorf("another shoot has the ManagedResources %+v, want only that of its own extension (%v)", others.Items, err)
	}
}
