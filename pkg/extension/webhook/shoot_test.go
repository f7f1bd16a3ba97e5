package webhook

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

func shootCluster(t *testing.T, name string, change func(*corev1beta1.Shoot)) *extensionsv1alpha1.Cluster {
	t.Helper()
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Type: "example"}}}
	change(shoot)
	raw, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	return &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: raw}}}
}

// registeredIn returns the webhooks in the ManagedResource of a shoot.
func registeredIn(t *testing.T, c client.Client, namespace string) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	mr, secret := &resourcesv1alpha1.ManagedResource{}, &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "extension-controlplane-shoot-webhooks"}, mr); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: mr.Spec.SecretRefs[0].Name}, secret); err != nil {
		t.Fatal(err)
	}
	objects, err := managedresource.Unpack(secret)
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects are %v (%v)", objects, err)
	}
	config := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestShoots registers webhooks in shoots, and again when the CA has changed.
func TestShoots(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	deleted := metav1.Now()
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		shootCluster(t, "own", func(*corev1beta1.Shoot) {}),
		shootCluster(t, "foreign", func(s *corev1beta1.Shoot) { s.Spec.Provider.Type = "other" }),
		shootCluster(t, "deleted", func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &deleted }),
		shootCluster(t, "migrating", func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate}
		}),
	).Build()
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	k := newKeeper(c, clock)
	changed := make(chan event.GenericEvent, 1)
	k.changed, k.Webhooks = changed, nil
	k.Shoots = &Shoots{Webhooks: []Webhook{{Name: "nodes"}}, Selects: ProviderType("example"), ManagedResource: ShootManagedResource}
	r := &shootRegistrar{k}
	reconcileAll := func() {
		t.Helper()
		for _, request := range append(r.all(t.Context(), nil), reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}}) {
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
	}
	reconcileAll() // before there is a bundle
	renew := func(want int) {
		t.Helper()
		if err := k.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(changed); got != want {
			t.Fatalf("%d events after renewal, want %d", got, want)
		}
	}
	renew(1)
	<-changed
	renew(0)
	reconcileAll()
	config := registeredIn(t, c, "own")
	first := config.Webhooks[0].ClientConfig.CABundle
	config.Webhooks[0].ClientConfig.CABundle = nil
	if diff := cmp.Diff(&admissionregistrationv1.MutatingWebhook{
		Name: "nodes.example.extensions.gardener.cloud", ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: new("https://provider-example-webhook." + namespace + ":443/nodes"),
		},
		FailurePolicy: new(admissionregistrationv1.Ignore), TimeoutSeconds: new(int32(10)), MatchPolicy: new(admissionregistrationv1.Exact),
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy: new(admissionregistrationv1.NeverReinvocationPolicy),
	}, &config.Webhooks[0]); diff != "" || config.Name != "gardener-extension-provider-example-shoot" {
		t.Errorf("%s (-want +got):\n%s", config.Name, diff)
	}
	for _, other := range []string{"foreign", "deleted", "migrating", "gone"} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: other, Name: ShootManagedResource}, &resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
			t.Errorf("shoot %q has webhooks (%v)", other, err)
		}
	}
	clock.Step(authorityValidity - 24*time.Hour)
	renew(1)
	reconcileAll()
	if again := registeredIn(t, c, "own").Webhooks[0].ClientConfig.CABundle; len(again) == 0 || string(again) == string(first) {
		t.Error("the shoot has not got the bundle with the new CA")
	}

	// The webhooks of a shoot that is no longer selected are deleted. Those of another extension stay, and so do those of a shoot that is deleted, until the
	// gardenlet deletes them.
	resource := func(namespace string) *resourcesv1alpha1.ManagedResource {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ShootManagedResource}}
	}
	if err := errors.Join(
		kube.Apply(t.Context(), c, "provider-other", resource("foreign")), kube.Apply(t.Context(), c, "provider-example", resource("deleted")),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "deleted"} {
		changed := shootCluster(t, name, func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Type = "other"
			if name == "deleted" {
				s.DeletionTimestamp = &deleted
			}
		})
		if err := c.Patch(t.Context(), changed, client.MergeFrom(&extensionsv1alpha1.Cluster{})); err != nil {
			t.Fatal(err)
		}
	}
	reconcileAll()
	for name, left := range map[string]bool{"own": false, "foreign": true, "deleted": true} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: name, Name: ShootManagedResource}, resource(name)); apierrors.IsNotFound(err) == left {
			t.Errorf("shoot %q has webhooks: %t, want %t (%v)", name, err == nil, left, err)
		}
	}
}

// The webhooks of a shoot that is selected again are registered when the deletion of the former ones has ended.
func TestShootIsSelectedAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: ShootManagedResource, Finalizers: []string{"example.com/blocked"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shootCluster(t, "own", func(*corev1beta1.Shoot) {})).Build()
	if err := errors.Join(c.Create(t.Context(), mr), c.Delete(t.Context(), mr)); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(c, testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	k.Shoots = &Shoots{Webhooks: []Webhook{{Name: "nodes"}}, Selects: ProviderType("example"), ManagedResource: ShootManagedResource}
	k.bundle.Store(new([]byte("bundle")))
	r, request := &shootRegistrar{k}, reconcile.Request{NamespacedName: client.ObjectKey{Name: "own"}}
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
		t.Errorf("while they are being deleted: %+v, %v", result, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(mr), mr); !apierrors.IsNotFound(err) { // the fake client ends the deletion
		t.Fatal(err)
	}
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 {
		t.Errorf("when they are deleted: %+v, %v", result, err)
	}
	registeredIn(t, c, "own")
}

func TestExtensionType(t *testing.T) {
	for name, tc := range map[string]struct {
		extension corev1beta1.Extension
		want      bool
	}{
		"enabled":  {corev1beta1.Extension{Type: "example"}, true},
		"disabled": {corev1beta1.Extension{Type: "example", Disabled: new(true)}, false},
		"another":  {corev1beta1.Extension{Type: "other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &extension.Cluster{Shoot: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Extensions: []corev1beta1.Extension{tc.extension}}}}
			if got := ExtensionType("example")(cluster); got != tc.want {
				t.Errorf("ExtensionType() = %t", got)
			}
		})
	}
}

// TestCertificateNamespace has a validating webhook for a garden, whose process runs in another cluster.
func TestCertificateNamespace(t *testing.T) {
	garden := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-garden", UID: "u"}}).Build()
	k := newKeeper(garden, testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	only := []admissionregistrationv1.MatchCondition{{Name: "only", Expression: "true"}}
	k.ByURL, k.CertificateNamespace, k.OwnerNamespace = true, "of-garden", "of-garden"
	k.Webhooks = []Webhook{{Name: "validate", Validating: true, MatchConditions: only}, {Name: "mutate", MatchConditions: only}}
	if err := k.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, object := range []client.Object{config, mutating} {
		if err := garden.Get(t.Context(), client.ObjectKey{Name: "gardener-extension-provider-example"}, object); err != nil {
			t.Fatal(err)
		}
	}
	if url := config.Webhooks[0].ClientConfig.URL; url == nil || *url != "https://provider-example-webhook."+namespace+":443/validate" || config.OwnerReferences[0].Name != "of-garden" {
		t.Errorf("webhook is %+v", config)
	}
	if diff := cmp.Diff([][]admissionregistrationv1.MatchCondition{only, only}, [][]admissionregistrationv1.MatchCondition{
		config.Webhooks[0].MatchConditions, mutating.Webhooks[0].MatchConditions,
	}); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	certificates := &corev1.SecretList{}
	if err := garden.List(t.Context(), certificates, client.InNamespace("of-garden")); err != nil || len(certificates.Items) == 0 {
		t.Errorf("there are %d Secrets (%v)", len(certificates.Items), err)
	}
}
