package controlplane

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// After a restoration of etcd, gardener-resource-manager may have a token of a ServiceAccount that is gone: only the flow can request another one.
func TestAccountsOf(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "sa", UID: "present"}}
	exists, err := accountsOf(t.Context(), fake.NewClientBuilder().WithObjects(account).Build())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		namespace string
		uid       types.UID
		want      bool
	}{
		{metav1.NamespaceSystem, "present", true},
		{metav1.NamespaceSystem, "lost", false},
		{metav1.NamespaceSystem, "", true},
		{"other", "unknown", true},
	} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
			"kubernetes.io": map[string]any{"serviceaccount": map[string]any{"uid": tc.uid}},
		}).SignedString([]byte("any key"))
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{resourcesv1alpha1.ServiceAccountNamespace: tc.namespace}}}
		if got := exists(secret, token); got != tc.want {
			t.Errorf("the account %q of a token in namespace %q exists: %v, want %v", tc.uid, tc.namespace, got, tc.want)
		}
	}
}
