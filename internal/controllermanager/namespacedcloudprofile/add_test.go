package namespacedcloudprofile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/test/behind"
)

func TestReconcileWithStaleCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	parent := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "parent"}, Spec: corev1beta1.CloudProfileSpec{Type: "now"}}
	profile := &corev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "p", Finalizers: []string{constants.FinalizerGardenerName}},
		Spec:       corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Name: "parent"}},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(parent, profile).WithStatusSubresource(profile).Build()
	behind.Case[*corev1beta1.NamespacedCloudProfile]{
		API: api, Object: profile, Changed: changed(),
		Status: func(p *corev1beta1.NamespacedCloudProfile) any { return p.Status },
		Other:  func(p *corev1beta1.NamespacedCloudProfile) { p.Status.CloudProfileSpec.Type = "before" },
		Pass: func(cache client.WithWatch) {
			r := &reconciler{gardenCache: cache, guard: guard.Guard{GardenCache: cache}}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(profile)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// With a provider configuration, each pass writes the status, which a webhook may change each time.
func TestChanged(t *testing.T) {
	before := &corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{ProviderConfig: &runtime.RawExtension{}}}
	after := before.DeepCopy()
	after.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{Type: "x"}
	if changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a status that an extension has merged is written again")
	}
}
