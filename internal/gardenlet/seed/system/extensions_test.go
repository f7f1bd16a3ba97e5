package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// TestExtensions reconciles the Extensions of a Seed: one in its spec, one by default, one that it disables, one that is for shoots, and one that
// it had before. Then it deletes the Seed.
func TestExtensions(t *testing.T) {
	clusters := stagetest.New(t)
	create(t, clusters.Garden, &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1beta1.ControllerRegistrationSpec{
		Resources: []corev1beta1.ControllerResource{
			{Kind: "Extension", Type: "specified", ClusterCompatibility: []corev1beta1.ClusterType{"seed"}},
			{Kind: "Extension", Type: "automatic", ClusterCompatibility: []corev1beta1.ClusterType{"shoot", "seed"}, AutoEnable: []corev1beta1.ClusterType{"seed"}},
			{Kind: "Extension", Type: "disabled", ClusterCompatibility: []corev1beta1.ClusterType{"seed"}, AutoEnable: []corev1beta1.ClusterType{"seed"}},
			{Kind: "Extension", Type: "shoots", ClusterCompatibility: []corev1beta1.ClusterType{"shoot"}, AutoEnable: []corev1beta1.ClusterType{"shoot"}},
			{Kind: "Extension", Type: "unsupported", ClusterCompatibility: []corev1beta1.ClusterType{"shoot"}},
		},
	}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "token"}, Data: map[string][]byte{"k": []byte("v")}})
	of := func(namespace, name string, class extensionsv1alpha1.ExtensionClass) *extensionsv1alpha1.Extension {
		e := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		e.Spec.Type, e.Spec.Class = name, &class
		return e
	}
	create(
		t, clusters.Seed, of("garden", "former", "seed"), of("garden", "operator", "garden"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "ref-former", Labels: map[string]string{
			"gardener.cloud/role": "resource-reference", "name.seed.gardener.cloud/s": "true",
		}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "operator", Labels: map[string]string{"gardener.cloud/role": "resource-reference"}}},
	)
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"}, Spec: corev1beta1.SeedSpec{
		Extensions: []corev1beta1.Extension{
			{Type: "specified", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}, {Type: "disabled", Disabled: new(true)}, {Type: "unsupported"},
		},
		Resources: []corev1beta1.NamedResourceReference{{Name: "token"}},
	}}
	seed.Spec.Resources[0].ResourceRef.Kind, seed.Spec.Resources[0].ResourceRef.Name = "Secret", "token"
	r := &reconciler{
		Values:      Values{SeedName: "s", GardenAPI: clusters.Garden, SeedAPI: clusters.Seed, Clock: clock.RealClock{}},
		gardenCache: clusters.Garden,
	}

	e, err := r.observeExtensions(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	reconcileAll := func() *extensionsv1alpha1.Extension {
		t.Helper()
		for _, task := range r.newRun(seed).extensionTasks(e) {
			if err := task.Run(t.Context()); err != nil {
				t.Fatalf("%s: %v", task.ID, err)
			}
		}
		specified := of("garden", "specified", "")
		if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(specified), specified); err != nil {
			t.Fatal(err)
		}
		return specified
	}
	first := reconcileAll()
	first.UID = "1" // the client has none
	if err := clusters.Seed.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	seed.Status.LastOperation, seed.Status.Gardener = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}, &corev1beta1.Gardener{}
	if reconcileAll().ResourceVersion == first.ResourceVersion {
		t.Error("the Extension is not reconciled again, as its spec is the same: what it refers to may have changed")
	}
	if diff := cmp.Diff(map[string]string{"automatic": "seed", "specified": `seed {"a":1}`, "operator": "garden"}, existing(t, clusters.Seed)); diff != "" {
		t.Errorf("Extensions (-want +got):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "ref-token"}, secret); err != nil || string(secret.Data["k"]) != "v" {
		t.Errorf("copy of the Secret: %v, %v", secret.Data, err)
	}
	for name, want := range map[string]bool{"ref-former": false, "operator": true} {
		if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: name}, secret); apierrors.IsNotFound(err) == want {
			t.Errorf("Secret %q: %v", name, err)
		}
	}

	seed.DeletionTimestamp = new(metav1.Now())
	if e, err = r.observeExtensions(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	f, err := r.newExtensionDeletion(seed, e)
	if err != nil {
		t.Fatal(err)
	}
	status := &statusReporter{gardenCache: clusters.Garden, clock: clock.RealClock{}, seed: seed}
	if err := status.run(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"operator": "garden"}, existing(t, clusters.Seed)); diff != "" {
		t.Errorf("Extensions after the deletion (-want +got):\n%s", diff)
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "ref-token"}, secret); !apierrors.IsNotFound(err) {
		t.Errorf("copy of the Secret after the deletion: %v", err)
	}
}

// A wait for an Extension ends early if the controller that is installed on this seed does not run.
func TestControllerOfExtension(t *testing.T) {
	clusters := stagetest.New(t)
	create(t, clusters.Garden, &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: corev1beta1.ControllerRegistrationSpec{
		Resources: []corev1beta1.ControllerResource{{Kind: "Extension", Type: "x"}},
	}})
	for _, name := range []string{"s", "other"} {
		create(t, clusters.Garden, &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "r-" + name}, Spec: corev1beta1.ControllerInstallationSpec{
			SeedRef: &corev1.ObjectReference{Name: name}, RegistrationRef: corev1.ObjectReference{Name: "r"},
		}})
	}
	r := &reconciler{Values: Values{SeedAPI: clusters.Seed}, gardenCache: clusters.Garden}
	run := r.newRun(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}).stageRun()
	if ci, err := run.Controller(t.Context(), "Extension", "x"); err != nil || ci == nil || ci.Name != "r-s" {
		t.Errorf("Controller() = %v, %v", ci, err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// existing returns the classes and configurations of the Extensions by their names.
func existing(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	list, found := &extensionsv1alpha1.ExtensionList{}, map[string]string{}
	if err := c.List(t.Context(), list, client.InNamespace("garden")); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		found[e.Name] = string(*e.Spec.Class)
		if e.Spec.ProviderConfig != nil {
			found[e.Name] += " " + string(e.Spec.ProviderConfig.Raw)
		}
	}
	return found
}
