package system

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/test/golden"
)

func TestFlows(t *testing.T) {
	r := &reconciler{}
	for name, spec := range map[string]corev1beta1.SeedSpec{
		"plain": {}, "backup": {Backup: &corev1beta1.Backup{}},
		"autoscaled": {Settings: &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := r.newFlow(&corev1beta1.Seed{Spec: spec}, extensions{})
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+".txt", f.String())
		})
	}
	two := extensions{desired: []extension.Extension{{Type: "a"}}, stale: []extension.Extension{{Type: "b"}}}
	f, err := r.newFlow(&corev1beta1.Seed{}, two)
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/extensions.txt", f.String())
	if f, err = r.newExtensionDeletion(&corev1beta1.Seed{}, two); err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion-extensions.txt", f.String())
	f, err = r.newDeletion(&corev1beta1.Seed{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/deletion.txt", f.String())
}

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
	r := &reconciler{Values: Values{SeedAPI: c}}
	if err := r.destroy(t.Context(), deployment, webhook); !errors.Is(err, broken) {
		t.Errorf("destroy() = %v, want %v", err, broken)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Errorf("the Deployment was deleted before the webhook: %v", err)
	}
}

// A cluster may enforce a pod security level by default, which components of the seed need not keep.
func TestNamespaceIsPrivileged(t *testing.T) {
	s := (&reconciler{Values: Values{SeedAPI: fake.NewFakeClient()}}).newRun(&corev1beta1.Seed{})
	if err := s.createNamespace(t.Context()); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{}
	if err := s.SeedAPI.Get(t.Context(), client.ObjectKey{Name: "garden"}, namespace); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"gardener.cloud/role": "garden", "pod-security.kubernetes.io/enforce": "privileged"}
	if diff := cmp.Diff(want, namespace.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
