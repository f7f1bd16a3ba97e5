package system

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Token requestors renew a token at once if the annotation with the time of the next renewal is missing. The gardenlet renews its own kubeconfig if the
// annotation of its Secret requests it.
func TestCredentialsAreRenewed(t *testing.T) {
	const garden, identity = "serviceaccount.resources.gardener.cloud/token-renew-timestamp", "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	secret := func(name string, labels map[string]string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "extension-x", Name: name, Labels: labels, Annotations: map[string]string{garden: "later", identity: "later"}},
			Data:       map[string][]byte{"token": []byte("t")},
		}
	}
	untouched := map[string]string{garden: "later", identity: "later"}
	for operation, want := range map[string]map[string]map[string]string{
		"renew-garden-access-secrets":    {"garden": {identity: "later"}, "shoot": untouched, "identity": untouched, "kubeconfig": untouched},
		"renew-workload-identity-tokens": {"garden": untouched, "shoot": untouched, "identity": {garden: "later"}, "kubeconfig": untouched},
		"renew-kubeconfig": {
			"garden": untouched, "shoot": untouched, "identity": untouched,
			"kubeconfig": {garden: "later", identity: "later", "gardener.cloud/operation": "renew"},
		},
		"reconcile": {"garden": untouched, "shoot": untouched, "identity": untouched, "kubeconfig": untouched},
	} {
		t.Run(operation, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"gardener.cloud/operation": operation}}}
			gardenCache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).Build()
			seedAPI := fake.NewClientBuilder().WithObjects(
				secret("garden", map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden"}),
				secret("shoot", map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}),
				secret("identity", map[string]string{"security.gardener.cloud/purpose": "workload-identity-token-requestor"}),
				secret("kubeconfig", nil),
			).Build()
			r := &reconciler{gardenCache: gardenCache}
			r.SeedAPI, r.KubeconfigSecret = seedAPI, &corev1.SecretReference{Namespace: "extension-x", Name: "kubeconfig"}
			if err := r.operate(t.Context(), seed, operation); err != nil {
				t.Fatal(err)
			}
			secrets, got := &corev1.SecretList{}, map[string]map[string]string{}
			if err := seedAPI.List(t.Context(), secrets); err != nil {
				t.Fatal(err)
			}
			for i := range secrets.Items {
				got[secrets.Items[i].Name] = secrets.Items[i].Annotations
				if string(secrets.Items[i].Data["token"]) != "t" {
					t.Errorf("the token in %q has changed", secrets.Items[i].Name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if err := gardenCache.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
				t.Fatal(err)
			}
			if seed.Annotations["gardener.cloud/operation"] != "" {
				t.Error("the Seed keeps the annotation after the operation")
			}
		})
	}
}
