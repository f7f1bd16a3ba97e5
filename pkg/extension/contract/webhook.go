package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
)

// WebhookSuite describes a webhook for control planes.
type WebhookSuite struct {
	// Client is a client of the API server of the seed. Its scheme has the kinds of admissionregistration.k8s.io.
	Client client.WithWatch
	// Extension is the name of the extension, and Type that of its infrastructure.
	Extension, Type string
	// Namespaces is what the names of namespaces begin with, which the suite creates.
	Namespaces string
	// New returns an object that the extension changes, as the gardenlet applies it, in a namespace.
	New func(namespace string) client.Object
	// Changed checks what the extension has changed.
	Changed func(*testing.T, *unstructured.Unstructured)
	// Timeout limits the wait for the registration, and for the server. Zero means a minute.
	Timeout time.Duration
}

// fieldOwner is who applies objects of control planes.
const fieldOwner = "gardenlet"

// RunWebhook runs the suite for a webhook that changes control planes.
func RunWebhook(t *testing.T, suite WebhookSuite) {
	t.Helper()
	s := suite
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	t.Run("it is registered as documented", s.registered)
	own, foreign := s.namespace(t, "own", s.Type), s.namespace(t, "foreign", "another-"+s.Type)
	t.Run("objects of its shoots are changed, each time to the same", func(t *testing.T) {
		changed := s.apply(t, s.New(own))
		s.Changed(t, changed)
		again := s.apply(t, s.New(own))
		s.Changed(t, again)
		if again.GetResourceVersion() != changed.GetResourceVersion() {
			t.Errorf("nothing was to be changed any more (-first +second):\n%s", cmp.Diff(changed.Object, again.Object))
		}
	})
	t.Run("objects of other shoots, and those without the label, stay as they are", func(t *testing.T) {
		unlabelled := s.New(own)
		unlabelled.SetName(unlabelled.GetName() + "-unlabelled")
		labels := unlabelled.GetLabels()
		delete(labels, extensionsv1alpha1.LabelMutatedByControlPlaneWebhook)
		unlabelled.SetLabels(labels)
		for _, object := range []client.Object{s.New(foreign), unlabelled} {
			want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				t.Fatal(err)
			}
			got := s.apply(t, object)
			if diff := cmp.Diff(size(want["spec"]), size(got.Object["spec"])); diff != "" {
				t.Errorf("the number of elements in lists of %s/%s (-applied +stored):\n%s", got.GetNamespace(), got.GetName(), diff)
			}
		}
	})
	t.Run("objects that are being deleted are not held up", func(t *testing.T) {
		object := s.New(own)
		object.SetName(s.New(own).GetName())
		object.SetFinalizers([]string{"example.com/contract"})
		stored := s.apply(t, object)
		if err := s.Client.Delete(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := s.Client.Patch(t.Context(), stored, patch); err != nil {
			t.Errorf("remove the finalizer: %v", err)
		}
	})
	t.Run("objects are deleted while the extension does not respond", s.deletedWithoutExtension)
}

// deletedWithoutExtension registers the webhook once more for another namespace, where it does not respond, and deletes an object there as the gardenlet does.
func (s WebhookSuite) deletedWithoutExtension(t *testing.T) {
	provider := "silent-" + s.Type
	namespace := s.namespace(t, "silent", provider)
	object := s.New(namespace)
	object.SetFinalizers([]string{"example.com/contract"})
	stored := s.apply(t, object)
	silent := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for _, w := range s.awaitRegistration(t).Webhooks {
		if forControlPlanes(w) {
			w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")}
			w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{constants.ShootProvider: provider}}
			silent.Webhooks = append(silent.Webhooks, w)
		}
	}
	if err := s.Client.Create(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Client.Delete(context.WithoutCancel(t.Context()), silent); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	// It cannot be watched when a kube-apiserver has observed the registration.
	var err error
	if !repeat(ctx, func() bool {
		another := s.New(namespace)
		another.SetName(another.GetName() + "-another")
		err = s.Client.Create(ctx, another, client.DryRunAll)
		return apierrors.IsInternalError(err)
	}) {
		t.Fatalf("%s is created without the extension: %v", describe(stored), err)
	}
	confirm := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+constants.ConfirmationDeletion+`":"true"}}}`))
	if err := s.Client.Patch(ctx, stored, confirm); err != nil {
		t.Errorf("confirm the deletion: %v", err)
	}
	if err := s.Client.Delete(ctx, stored); err != nil {
		t.Fatal(err)
	}
	release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := s.Client.Patch(ctx, stored, release); err != nil {
		t.Errorf("remove the finalizer: %v", err)
	}
}

// repeat repeats a request until it is done. It is false if the context ends before.
func repeat(ctx context.Context, request func() (done bool)) bool {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return request(), nil }) == nil
}

// forControlPlanes says whether a webhook is one for control planes.
func forControlPlanes(w admissionregistrationv1.MutatingWebhook) bool {
	return w.ObjectSelector != nil && w.ObjectSelector.MatchLabels[extensionsv1alpha1.LabelMutatedByControlPlaneWebhook] == "true"
}

// size returns the number of elements of all lists in an object, by their path.
func size(value any) map[string]int {
	out := map[string]int{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, field := range v {
				walk(path+"."+key, field)
			}
		case []any:
			out[path] += len(v)
			for _, element := range v {
				walk(path+"[]", element)
			}
		}
	}
	walk("", value)
	return out
}

func (s WebhookSuite) registered(t *testing.T) {
	config := s.awaitRegistration(t)
	if len(config.OwnerReferences) != 1 || config.OwnerReferences[0].Kind != "Namespace" {
		t.Errorf("it is not deleted with the namespace of the extension: owners are %v", config.OwnerReferences)
	}
	for _, w := range config.Webhooks {
		if timeout := ptr.Deref(w.TimeoutSeconds, 0); timeout < 1 || timeout > 10 {
			t.Errorf("webhook %s: the timeout is %d seconds; a control plane must not wait for longer than 10", w.Name, timeout)
		}
		if effects := ptr.Deref(w.SideEffects, ""); effects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("webhook %s: its side effects are %q", w.Name, effects)
		}
		if !forControlPlanes(w) {
			continue
		}
		if got := ptr.Deref(w.FailurePolicy, ""); got != admissionregistrationv1.Fail {
			t.Errorf("webhook %s: a control plane would be deployed without the extension: its failure policy is %q", w.Name, got)
		}
		want := &metav1.LabelSelector{MatchLabels: map[string]string{constants.ShootProvider: s.Type}}
		if diff := cmp.Diff(want, w.NamespaceSelector); diff != "" {
			t.Errorf("webhook %s: it must be called for its own shoots only (-want +got):\n%s", w.Name, diff)
		}
	}
}

// awaitRegistration waits until the configuration of the webhooks exists.
func (s WebhookSuite) awaitRegistration(t *testing.T) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	name := "gardener-extension-" + s.Extension
	changes, err := s.Client.Watch(ctx, &admissionregistrationv1.MutatingWebhookConfigurationList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for {
		select {
		case change, ok := <-changes.ResultChan():
			if config, is := change.Object.(*admissionregistrationv1.MutatingWebhookConfiguration); ok && is && len(config.Webhooks) > 0 {
				return config
			}
			if !ok {
				t.Fatalf("the watch of MutatingWebhookConfiguration %q ended", name)
			}
		case <-ctx.Done():
			t.Fatalf("there is no MutatingWebhookConfiguration %q with webhooks", name)
		}
	}
}

// namespace creates one of a control plane.
func (s WebhookSuite) namespace(t *testing.T, suffix, provider string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespaces + "-" + suffix, Labels: map[string]string{
		constants.GardenRole: constants.GardenRoleShoot, constants.ShootProvider: provider,
	}}}
	if err := s.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// apply applies an object as the gardenlet does, and returns what is stored. The server of the webhook may not have started yet, which cannot be
// watched.
func (s WebhookSuite) apply(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	u, err := kube.Manifest(s.Client.Scheme(), object)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	repeat(ctx, func() bool {
		err = s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner(fieldOwner), client.ForceOwnership)
		return !apierrors.IsInternalError(err)
	})
	if err != nil {
		t.Fatalf("apply %s: %v", describe(u), err)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(u.GroupVersionKind())
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(u), stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

func describe(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}
