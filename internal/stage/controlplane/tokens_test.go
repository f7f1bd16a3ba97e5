package controlplane

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// After a restoration of etcd, gardener-resource-manager may have a token of a ServiceAccount that is gone: only the flow can request another one.
func TestAccountsOf(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "sa", UID: "present"}}
	exists, err := accountsOf(t.Context(), fake.NewClientBuilder().WithObjects(account).Build())
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[types.UID]bool{"present": true, "lost": false, "": true} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
			"kubernetes.io": map[string]any{"serviceaccount": map[string]any{"uid": uid}},
		}).SignedString([]byte("any key"))
		if err != nil {
			t.Fatal(err)
		}
		if got := exists(token); got != want {
			t.Errorf("the account %q of a token exists: %v, want %v", uid, got, want)
		}
	}
}
