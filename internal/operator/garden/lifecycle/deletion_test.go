package lifecycle

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func managedResource(name string, class *string, finalizers ...string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Finalizers: finalizers}, Spec: resourcesv1alpha1.ManagedResourceSpec{Class: class},
	}
}

// deleting returns what a pass that deletes a Garden works with.
func deleting(t *testing.T, garden *operatorv1alpha1.Garden, objects ...client.Object) *state {
	t.Helper()
	l := newLandscape(t)
	create(t, l.runtime, objects...)
	garden.DeletionTimestamp = new(metav1.Now())
	s, err := l.observe(t.Context(), garden)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Those of extensions and of users need the components that are deleted next, so they have to go first.
func TestDeletionWaitsForManagedResourcesOfOthers(t *testing.T) {
	seed := new("seed")
	for name, tc := range map[string]struct {
		objects                    []client.Object
		virtualWaits, runtimeWaits string
	}{
		"nothing": {},
		"own ones of the virtual cluster": {objects: []client.Object{
			managedResource("garden-system-virtual", nil), managedResource("shoot-core-gardeneraccess", nil), managedResource("shoot-core-kube-controller-manager", nil),
			managedResource("shoot-core-gardener-resource-manager", nil), managedResource("gardener-apiserver-virtual", nil), managedResource("gardener-scheduler-virtual", nil),
		}},
		"one of an extension":        {objects: []client.Object{managedResource("extension-registration-x", nil)}, virtualWaits: "extension-registration-x"},
		"one of the runtime cluster": {objects: []client.Object{managedResource("extension-x-garden", seed)}, runtimeWaits: "extension-x-garden"},
	} {
		t.Run(name, func(t *testing.T) {
			s := deleting(t, plainGarden(), tc.objects...)
			for _, check := range []struct {
				await func(context.Context) error
				waits string
			}{{s.awaitOnlyOwn, tc.virtualWaits}, {s.awaitNoRuntimeResources, tc.runtimeWaits}} {
				err := stagetest.UntilIdle(t, check.await)
				if (err != nil) != (check.waits != "") || err != nil && !strings.Contains(err.Error(), check.waits) {
					t.Errorf("error %v, want one about %q", err, check.waits)
				}
			}
		})
	}
}

// A creation that failed early has left no CRDs.
func TestDeletionWithoutCRDs(t *testing.T) {
	s := deleting(t, fullGarden())
	s.RuntimeAPI = interceptor.NewClient(s.RuntimeAPI, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return orNoMatch(obj, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return orNoMatch(list, func() error { return c.List(ctx, list, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return orNoMatch(obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
	s.run.SeedAPI = s.RuntimeAPI
	for name, step := range map[string]func(context.Context) error{
		"extensions-unregistered": s.awaitOnlyOwn, "gardener-gone": s.deleteGardener, "virtual-resources-gone": s.deleteVirtualResources,
		"control-plane-gone": s.deleteControlPlane, "etcd-gone": s.deleteEtcds, "backup-gone": s.deleteBackup,
		"dnsrecords-gone":        func(ctx context.Context) error { return s.deleteRecords(ctx, nil) },
		"runtime-resources-gone": s.awaitNoRuntimeResources, "credentials-gone": s.deleteCredentials,
	} {
		if err := stagetest.UntilIdle(t, step); err != nil {
			t.Errorf("task %s: %v", name, err)
		}
	}
}

// orNoMatch returns that a kind is not served if it is one that the flow deploys.
func orNoMatch(obj any, call func() error) error {
	switch obj.(type) {
	case *resourcesv1alpha1.ManagedResource, *resourcesv1alpha1.ManagedResourceList, *druidv1alpha1.Etcd, *druidv1alpha1.EtcdList,
		extensionsv1alpha1.Object, *extensionsv1alpha1.DNSRecordList, *extensionsv1alpha1.ExtensionList:
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "any"}}
	}
	return call()
}

// Without its kube-apiserver, the resource manager of the virtual cluster cannot finish, so its finalizers are removed. Those of others stay.
func TestVirtualResourcesAreReleased(t *testing.T) {
	own := managedResource("garden-system-virtual", nil, "resources.gardener.cloud/gardener-resource-manager")
	guarded := managedResource("shoot-core-gardeneraccess", nil, "example.com/any", "resources.gardener.cloud/gardener-resource-manager")
	runtime := managedResource("gardener-scheduler-runtime", new("seed"))
	s := deleting(t, plainGarden(), own, guarded, runtime)
	if err := s.deleteVirtualResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(own), own); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedResource %q: %v, want it to be gone", own.Name, err)
	}
	if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(guarded), guarded); err != nil {
		t.Fatal(err)
	}
	if len(guarded.Finalizers) != 1 || guarded.Finalizers[0] != "example.com/any" {
		t.Errorf("finalizers %q, want the one of another controller only", guarded.Finalizers)
	}
	if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(runtime), runtime); err != nil || runtime.DeletionTimestamp != nil {
		t.Errorf("ManagedResource %q of the runtime cluster is deleted: %v", runtime.Name, err)
	}
}

func TestCredentialsAreDeleted(t *testing.T) {
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: labels}}
	}
	gone := []client.Object{
		secret("ca", map[string]string{"managed-by": "secrets-manager", "manager-identity": "gardener-operator"}),
		secret("shoot-access-x", map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "config", Labels: map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}}},
	}
	kept := []client.Object{
		secret("backup", nil), secret("ca-webhook", map[string]string{"managed-by": "secrets-manager", "manager-identity": "gardener-operator-webhook"}),
	}
	s := deleting(t, plainGarden(), append(gone, kept...)...)
	if err := s.deleteCredentials(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, object := range gone {
		if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %q: %v, want it to be gone", object, object.GetName(), err)
		}
	}
	for _, object := range kept {
		if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Error(err)
		}
	}
}

// etcd-druid and the protection of Etcds want a confirmed deletion. Those of shoots in other namespaces stay.
func TestControlPlaneAndEtcdsAreDeleted(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-kube-apiserver", Labels: map[string]string{"app": "kubernetes", "role": "apiserver"}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-kube-apiserver", Labels: deployment.Labels}}
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-kube-apiserver", Labels: deployment.Labels}}
	main := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-etcd-main"}}
	events := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "virtual-garden-etcd-events"}}
	other := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: "etcd-main"}}
	s := deleting(t, plainGarden(), deployment, service, autoscaler, main, events, other)
	for _, step := range []func(context.Context) error{s.deleteControlPlane, s.deleteEtcds} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range []client.Object{deployment, service, autoscaler, main, events} {
		if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %q: %v, want it to be gone", object, object.GetName(), err)
		}
	}
	if err := s.RuntimeAPI.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Error(err)
	}
}
