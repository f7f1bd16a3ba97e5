package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInvalidateToken(t *testing.T) {
	for name, tc := range map[string]struct {
		typ   corev1.SecretType
		label string
		want  string
	}{
		"with the label":         {corev1.SecretTypeServiceAccountToken, "true", "\x00\x00\x00"},
		"without the label":      {corev1.SecretTypeServiceAccountToken, "", "valid"},
		"a Secret that is other": {corev1.SecretTypeOpaque, "true", "valid"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"token-invalidator.resources.gardener.cloud/consider": tc.label}},
				Type:       tc.typ, Data: map[string][]byte{"token": []byte("valid"), "ca.crt": []byte("CA")},
			}
			got := send(t, invalidateToken, "Secret", secret)
			if diff := cmp.Diff(map[string][]byte{"token": []byte(tc.want), "ca.crt": []byte("CA")}, got.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}
