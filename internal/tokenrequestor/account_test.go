package tokenrequestor

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenOf returns a token that says that it is of the ServiceAccount with a UID.
func tokenOf(t *testing.T, uid string) string {
	t.Helper()
	claims := jwt.MapClaims{"kubernetes.io": map[string]any{"namespace": "kube-system", "serviceaccount": map[string]any{"name": "sa", "uid": uid}}}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("any key"))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// When etcd is restored from a backup, a ServiceAccount that is newer is gone, and may have been created again by another process.
func TestATokenOfAnotherAccountIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		of   string
		want int
	}{
		"a token of the account stays":                      {"present", 0},
		"one of an account that had its name is replaced":   {"lost", 1},
		"one that does not say whose it is is for its time": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(secret(map[string][]byte{"token": []byte(tokenOf(t, tc.of))},
				"serviceaccount.resources.gardener.cloud/token-renew-timestamp", "2026-11-21T20:00:00Z"))
			w.clock.SetTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "sa", UID: "present"}}
			if err := w.target.Create(t.Context(), account); err != nil {
				t.Fatal(err)
			}
			if w.pass(t); w.tokens != tc.want {
				t.Errorf("%d tokens were requested, want %d", w.tokens, tc.want)
			}
		})
	}
}
