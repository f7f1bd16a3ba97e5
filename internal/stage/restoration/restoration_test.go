package restoration

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// A ShootState is written by the gardenlet of the former seed, and its extensions decide what is in it. They get no tokens of the next seed.
func TestObjectsOfExtensions(t *testing.T) {
	orders := map[string]string{
		"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden",
		"security.gardener.cloud/purpose": "workload-identity-token-requestor", "own": "label",
	}
	annotations := map[string]string{"serviceaccount.resources.gardener.cloud/name": "extension-victim", "kubernetes.io/service-account.name": "victim"}
	for name, tc := range map[string]struct {
		object  client.Object
		kind    string
		name    string            // "evil" if it is empty
		want    map[string]string // labels
		refused string
	}{
		"a Secret": {
			object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": "label"}}, Data: map[string][]byte{"a": []byte("b")}},
			kind:   "Secret", want: map[string]string{"own": "label"},
		},
		"a ConfigMap": {object: &corev1.ConfigMap{Data: map[string]string{"a": "b"}}, kind: "ConfigMap"},
		"an order for a token of the garden": {
			object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: orders, Annotations: annotations}}, kind: "Secret",
			want: map[string]string{"resources.gardener.cloud/class": "garden", "own": "label"},
		},
		"a token of a ServiceAccount": {
			object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Type: corev1.SecretTypeServiceAccountToken}, kind: "Secret",
			refused: "tokens of ServiceAccounts",
		},
		"a manifest":   {object: &corev1.Secret{}, kind: "Secret", name: "managedresource-extension-controlplane-seed-01234567", refused: "ManagedResources"},
		"another kind": {object: &corev1.ServiceAccount{}, kind: "ServiceAccount", refused: "Secrets and ConfigMaps only"},
	} {
		t.Run(name, func(t *testing.T) {
			objectName := cmp.Or(tc.name, "evil")
			tc.object.SetName(objectName)
			tc.object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(tc.kind))
			raw, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			ref := autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: tc.kind, Name: objectName}
			saved := &corev1beta1.ShootStateSpec{
				Extensions: []corev1beta1.ExtensionResourceState{{
					Kind: "Infrastructure", Name: new(stagetest.Name), Resources: []corev1beta1.NamedResourceReference{{Name: "a", ResourceRef: ref}},
				}},
				Resources: []corev1beta1.ResourceData{{CrossVersionObjectReference: ref, Data: runtime.RawExtension{Raw: raw}}},
			}
			clusters := stagetest.New(t)
			_, err = States(clusters.Run(), saved)(t.Context(), "Infrastructure", stagetest.Name)
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("error is %v, want %q", err, tc.refused)
			}
			err = clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: objectName}, tc.object)
			if tc.refused != "" {
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is created: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.want, tc.object.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialsAreNoManifests(t *testing.T) {
	clusters := stagetest.New(t)
	saved := &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{{
		Name: "managedresource-extension-controlplane-seed-01234567", Type: "secret", Data: runtime.RawExtension{Raw: []byte(`{"data":{"evil.yaml":"e30="}}`)},
	}}}
	if err := Credentials(clusters.Run(), saved).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "ManagedResources") {
		t.Errorf("error is %v", err)
	}
}
