package contract

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/managedresource"
)

// ShootWebhookSuite describes webhooks for objects in shoots.
type ShootWebhookSuite struct {
	// Client is a client of the API server of the seed.
	Client client.WithWatch
	// Extension is the name of the extension.
	Extension string
	// Namespace is that of the control plane of a shoot which the extension selects. It has a Cluster.
	Namespace string
	// ManagedResource is the name of the ManagedResource with the webhooks.
	ManagedResource string
	// Deselect changes the Cluster so that the extension does not select the shoot any more: its webhooks are deleted. Nil means that this is not checked.
	Deselect func(*testing.T)
	// Timeout limits the wait for it. Zero means a minute.
	Timeout time.Duration
}

// RunShootWebhook runs the suite for webhooks in shoots: it checks their registration, and its end.
func RunShootWebhook(t *testing.T, s ShootWebhookSuite) {
	t.Helper()
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	objects := s.await(t)
	if len(objects) == 0 {
		t.Fatal("no webhook is registered")
	}
	for _, object := range objects {
		if want := "gardener-extension-" + s.Extension + "-shoot"; object.GetName() != want {
			t.Errorf("the %s has the name %q, want %q", object.GetKind(), object.GetName(), want)
		}
		// Both kinds of configurations have these fields.
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
			t.Fatal(err)
		}
		for _, w := range config.Webhooks {
			if err := servesShoots(w); err != nil {
				t.Errorf("webhook %s: %v", w.Name, err)
			}
		}
	}
	if s.Deselect != nil {
		s.awaitGone(t)
	}
}

// servesShoots returns why a webhook does not fit into a shoot.
func servesShoots(w admissionregistrationv1.ValidatingWebhook) error {
	switch {
	case ptr.Deref(w.FailurePolicy, "") != admissionregistrationv1.Ignore:
		return fmt.Errorf("requests of users would fail without the extension: its failure policy is %q", ptr.Deref(w.FailurePolicy, ""))
	case w.ClientConfig.Service != nil || !strings.HasPrefix(ptr.Deref(w.ClientConfig.URL, ""), "https://"):
		return fmt.Errorf("the kube-apiserver of a shoot runs in the seed, and needs a URL with https: it has %+v", w.ClientConfig)
	case !x509.NewCertPool().AppendCertsFromPEM(w.ClientConfig.CABundle):
		return errors.New("it has no CA bundle")
	case ptr.Deref(w.TimeoutSeconds, 30) > 10:
		return fmt.Errorf("the timeout is %d seconds; a request of a user must not wait for longer than 10", ptr.Deref(w.TimeoutSeconds, 30))
	case ptr.Deref(w.SideEffects, "") != admissionregistrationv1.SideEffectClassNone:
		return fmt.Errorf("its side effects are %q", ptr.Deref(w.SideEffects, ""))
	}
	return nil
}

// watch watches the ManagedResource.
func (s ShootWebhookSuite) watch(ctx context.Context, t *testing.T) watch.Interface {
	t.Helper()
	changes, err := s.Client.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace(s.Namespace), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.ManagedResource),
	})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// awaitGone waits until the ManagedResource is deleted. Its finalizers are those of gardener-resource-manager.
func (s ShootWebhookSuite) awaitGone(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	changes := s.watch(ctx, t)
	defer changes.Stop()
	s.Deselect(t)
	for {
		select {
		case change, ok := <-changes.ResultChan():
			mr, is := change.Object.(*resourcesv1alpha1.ManagedResource)
			if !ok || !is {
				t.Fatalf("the watch of ManagedResource %q ended", s.ManagedResource)
			}
			if change.Type == watch.Deleted || mr.DeletionTimestamp != nil {
				return
			}
		case <-ctx.Done():
			t.Fatalf("ManagedResource %q is left, although the extension does not select the shoot any more", s.ManagedResource)
		}
	}
}

// await waits for the ManagedResource, and returns its objects.
func (s ShootWebhookSuite) await(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	changes := s.watch(ctx, t)
	defer changes.Stop()
	for {
		select {
		case change, ok := <-changes.ResultChan():
			mr, is := change.Object.(*resourcesv1alpha1.ManagedResource)
			if !ok || !is {
				t.Fatalf("the watch of ManagedResource %q ended", s.ManagedResource)
			}
			var objects []*unstructured.Unstructured
			for _, ref := range mr.Spec.SecretRefs {
				secret := &corev1.Secret{}
				if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: ref.Name}, secret); err != nil {
					t.Fatal(err)
				}
				unpacked, err := managedresource.Unpack(secret)
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, unpacked...)
			}
			return objects
		case <-ctx.Done():
			t.Fatalf("there is no ManagedResource %q", s.ManagedResource)
		}
	}
}
