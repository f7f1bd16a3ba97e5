package generic

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/managedresource"
)

const namespace = "shoot--dev--crazy"

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// resources returns the names of the ManagedResources. Those with a class other than the shoot's have it behind their name.
func resources(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, mr := range list.Items {
		name := mr.Name
		if mr.Spec.Class != nil {
			name += " " + *mr.Spec.Class
		}
		names = append(names, name)
	}
	return names
}

// content returns the only object of a ManagedResource.
func content(t *testing.T, c client.Client, name string) map[string]any {
	t.Helper()
	mr, secret := &resourcesv1alpha1.ManagedResource{}, &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: mr.Spec.SecretRefs[0].Name}, secret); err != nil {
		t.Fatal(err)
	}
	objects, err := managedresource.Unpack(secret)
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects are %v (%v)", objects, err)
	}
	return objects[0].Object
}

// untilDone calls an operation until it does not wait any more, and returns what it waited for.
func untilDone(t *testing.T, operation func() error) (waited int) {
	t.Helper()
	for {
		err := operation()
		var wait *extension.Wait
		switch {
		case err == nil:
			return waited
		case !errors.As(err, &wait) || waited > 10:
			t.Fatal(err)
		}
		waited++
	}
}

func TestControlPlane(t *testing.T) {
	kubeAPIServer := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudprovider"}, Data: map[string][]byte{"key": []byte("one")}}
	c := newClient(t, kubeAPIServer, credentials)
	configMap := func(name string, data map[string]string) []client.Object {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}}
	}
	fixed := func(name string) RenderControlPlane {
		return func(context.Context, ControlPlaneInput) ([]client.Object, error) { return configMap(name, nil), nil }
	}
	region, replicas := "here", int32(0)
	a := &ControlPlane{
		Client: c, Reader: c, Owner: "provider-example", ShootCRDs: fixed("crds"), Shoot: fixed("shoot"), StorageClasses: fixed("classes"),
		Configuration: func(_ context.Context, in ControlPlaneInput) ([]client.Object, error) {
			return configMap("cloud-provider-config", map[string]string{"region": region, "key": string(in.Credentials["key"])}), nil
		},
		Components: func(_ context.Context, in ControlPlaneInput) ([]client.Object, error) {
			replicas = in.Replicas(1)
			return configMap("ccm", in.Checksums), nil
		},
	}
	controlPlane := &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	controlPlane.Spec.SecretRef = corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"}
	cluster := &extension.Cluster{Shoot: &corev1beta1.Shoot{}}
	reconcile := func() map[string]any {
		t.Helper()
		if err := a.Reconcile(t.Context(), controlPlane, cluster); err != nil {
			t.Fatal(err)
		}
		data, _ := content(t, c, ControlPlaneResource)["data"].(map[string]any)
		return data
	}
	first := reconcile()
	if diff := cmp.Diff([]string{
		"extension-controlplane-configuration-seed seed", "extension-controlplane-seed seed", "extension-controlplane-shoot", "extension-controlplane-shoot-crds",
		"extension-controlplane-storageclasses",
	}, resources(t, c)); diff != "" {
		t.Errorf("ManagedResources (-want +got):\n%s", diff)
	}
	if len(first) != 2 || first["checksum/secret-cloudprovider"] == nil || first["checksum/configmap-cloud-provider-config"] == nil || replicas != 1 {
		t.Errorf("checksums are %v, replicas %d", first, replicas)
	}
	if diff := cmp.Diff(first, reconcile()); diff != "" {
		t.Errorf("nothing has changed (-first +second):\n%s", diff)
	}
	region = "there"
	if second := reconcile(); second["checksum/configmap-cloud-provider-config"] == first["checksum/configmap-cloud-provider-config"] ||
		second["checksum/secret-cloudprovider"] != first["checksum/secret-cloudprovider"] {
		t.Errorf("only the configuration has changed: %v, then %v", first, second)
	}
	// Hibernation stops what connects to the kube-apiserver after it.
	cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
	if reconcile(); replicas != 1 {
		t.Error("components are stopped before the kube-apiserver")
	}
	kubeAPIServer.Spec.Replicas = new(int32(0))
	if err := c.Update(t.Context(), kubeAPIServer); err != nil {
		t.Fatal(err)
	}
	if reconcile(); replicas != 0 {
		t.Error("components run without a kube-apiserver")
	}
	// What is not rendered any more is deleted.
	a.StorageClasses = nil
	reconcile()
	if slices.Contains(resources(t, c), StorageClassesResource) {
		t.Error("the ManagedResource of the StorageClasses is left")
	}
	untilDone(t, func() error { return a.Delete(t.Context(), controlPlane, cluster) })
	if left := resources(t, c); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestControlPlaneDeletionOrder has the components in the seed for as long as there is something in the shoot, and keeps that in a migration.
func TestControlPlaneDeletionOrder(t *testing.T) {
	blocked := func(name string) *resourcesv1alpha1.ManagedResource {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.com/blocked"}}}
	}
	c := newClient(t, blocked(ShootResource), blocked(ControlPlaneResource))
	a, controlPlane := &ControlPlane{Client: c, Reader: c}, &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	deleting := func(name string) (*resourcesv1alpha1.ManagedResource, bool) {
		t.Helper()
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return mr, mr.DeletionTimestamp != nil
	}
	var wait *extension.Wait
	if err := a.Migrate(t.Context(), controlPlane, nil); !errors.As(err, &wait) {
		t.Fatalf("Migrate() = %v", err)
	}
	shoot, isDeleting := deleting(ShootResource)
	if !isDeleting || shoot.Spec.KeepObjects == nil || !*shoot.Spec.KeepObjects {
		t.Errorf("ManagedResource of the shoot is %+v", shoot.Spec)
	}
	if _, isDeleting := deleting(ControlPlaneResource); isDeleting {
		t.Error("the components are deleted before what is in the shoot")
	}
	shoot.Finalizers = nil
	if err := c.Update(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	if err := a.Migrate(t.Context(), controlPlane, nil); !errors.As(err, &wait) {
		t.Fatalf("Migrate() = %v", err)
	}
	if seed, isDeleting := deleting(ControlPlaneResource); !isDeleting || seed.Spec.KeepObjects != nil {
		t.Errorf("ManagedResource of the seed is %+v", seed.Spec)
	}
}

func TestContainerRuntime(t *testing.T) {
	pool := func(name string) *extensionsv1alpha1.ContainerRuntime {
		r := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gvisor-" + name}}
		r.Spec.Type, r.Spec.WorkerPool.Name = "gvisor", name
		return r
	}
	one, two := pool("one"), pool("two")
	c := newClient(t, one, two)
	render := func(_ context.Context, r *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"}}}, nil
	}
	a := &ContainerRuntime{Client: c, Owner: "runtime-gvisor", Shoot: render, Pool: render}
	for _, r := range []*extensionsv1alpha1.ContainerRuntime{one, two} {
		if err := a.Reconcile(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, resources(t, c)); diff != "" {
			t.Errorf("ManagedResources (-want +got):\n%s", diff)
		}
	}
	check("extension-runtime-gvisor", "extension-runtime-gvisor-installation-one", "extension-runtime-gvisor-installation-two")
	remove := func(r *extensionsv1alpha1.ContainerRuntime) {
		t.Helper()
		untilDone(t, func() error { return a.Delete(t.Context(), r, nil) })
		if err := c.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	remove(one)
	check("extension-runtime-gvisor", "extension-runtime-gvisor-installation-two")
	remove(two)
	check()
	for _, operation := range []func(context.Context, *extensionsv1alpha1.ContainerRuntime, *extension.Cluster) error{a.Migrate, a.ForceDelete} {
		if err := a.Reconcile(t.Context(), one, nil); err != nil {
			t.Fatal(err)
		}
		untilDone(t, func() error { return operation(t.Context(), one, nil) })
		check()
	}
}

func TestControlPlaneOf(t *testing.T) {
	for entry, want := range map[string]string{
		"shoot--dev--crazy--uid": "shoot--dev--crazy", "source-shoot--dev--crazy--uid": "shoot--dev--crazy", "garden": "garden",
	} {
		if got := controlPlaneOf(entry); got != want {
			t.Errorf("controlPlaneOf(%q) = %q", entry, got)
		}
	}
}

func TestBackupEntry(t *testing.T) {
	entry := &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: namespace + "--uid"}}
	entry.Spec.BucketName, entry.Spec.SecretRef = "bucket", corev1.SecretReference{Namespace: "garden", Name: "entry"}
	c := newClient(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "entry"}, Data: map[string][]byte{"key": []byte("k")}})
	a := &BackupEntry{Client: c, Owner: "provider-example", Secret: func(_ context.Context, entry *extensionsv1alpha1.BackupEntry, data map[string][]byte) error {
		data["region"] = []byte("here")
		return nil
	}}
	if err := a.Reconcile(t.Context(), entry, nil); err != nil { // the control plane is not in this seed
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Reconcile(t.Context(), entry, nil); err != nil {
		t.Fatal(err)
	}
	ofSource := entry.DeepCopy()
	ofSource.Name, ofSource.Spec.BucketName = "source-"+entry.Name, "former"
	if err := a.Reconcile(t.Context(), ofSource, nil); err != nil {
		t.Fatal(err)
	}
	for name, bucket := range map[string]string{"etcd-backup": "bucket", "source-etcd-backup": "former"} {
		got := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string][]byte{"bucketName": []byte(bucket), "key": []byte("k"), "region": []byte("here")}, got.Data); diff != "" {
			t.Errorf("Secret %q (-want +got):\n%s", name, diff)
		}
	}
	if got := BackupPrefix(ofSource); got != entry.Name {
		t.Errorf("prefix is %q", got)
	}
}
