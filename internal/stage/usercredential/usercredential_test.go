package usercredential

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// Labels and annotations that users write stay in the garden: controllers of the seed act on them.
func TestCredentialsAreCopiedWithoutMetadata(t *testing.T) {
	scheme := stagetest.Scheme(t)
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "crazy-botany", UID: "1"}}
	meta := metav1.ObjectMeta{
		Namespace: "garden-dev", Name: "creds",
		Labels: map[string]string{
			"security.gardener.cloud/purpose": "workload-identity-token-requestor", "resources.gardener.cloud/purpose": "token-requestor",
			"resources.gardener.cloud/class": "garden",
		},
		Annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/name": "victim", "workloadidentity.security.gardener.cloud/namespace": "garden-victim",
			"serviceaccount.resources.gardener.cloud/name": "extension-victim",
		},
	}
	data := map[string][]byte{"k": []byte("v")}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: data},
		&corev1beta1.InternalSecret{ObjectMeta: meta, Data: data},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta, Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}}},
	).Build()
	ofIdentity := metav1.ObjectMeta{
		Namespace: "shoot--dev--crazy-botany", Name: "copy",
		Labels: map[string]string{
			"security.gardener.cloud/purpose": "workload-identity-token-requestor", "workloadidentity.security.gardener.cloud/provider": "local", "own": "label",
		},
		Annotations: map[string]string{
			"workloadidentity.security.gardener.cloud/name": "creds", "workloadidentity.security.gardener.cloud/namespace": "garden-dev",
			"workloadidentity.security.gardener.cloud/context-object": `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"crazy-botany","namespace":"garden-dev","uid":"1"}`,
		},
	}
	plain := metav1.ObjectMeta{Namespace: ofIdentity.Namespace, Name: ofIdentity.Name, Labels: map[string]string{"own": "label"}}
	for kind, want := range map[string]*corev1.Secret{
		"Secret":           {ObjectMeta: plain, Data: data, Type: corev1.SecretTypeOpaque},
		"InternalSecret":   {ObjectMeta: plain, Data: data, Type: corev1.SecretTypeOpaque},
		"WorkloadIdentity": {ObjectMeta: ofIdentity, Type: corev1.SecretTypeOpaque},
	} {
		t.Run(kind, func(t *testing.T) {
			c, err := Read(t.Context(), garden, shoot, corev1.ObjectReference{Kind: kind, Namespace: meta.Namespace, Name: meta.Name})
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind != kind {
				t.Errorf("the kind is %q, want that of the reference", c.Kind)
			}
			if diff := cmp.Diff(want, c.Secret(plain.Namespace, plain.Name, map[string]string{"own": "label"})); diff != "" {
				t.Errorf("Secret in the seed (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Read(t.Context(), garden, shoot, corev1.ObjectReference{Kind: "ConfigMap"}); err == nil {
		t.Error("credentials in a ConfigMap are accepted")
	}
}
